// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks the books what members have attached, what is to be done about it, and does it.
//
// The same decision as for bubbles, but memory only: the threads have been placed, and the members of level-1 teams and the
// openers of nested ones never leave their workers.
#include "omp/team_users.h"

#include <algorithm>

#include "base/memory_moves_setting.h"
#include "memory/node_stats.h"
#include "omp/follow_memory.h"
#include "policies/memory/decision_log.h"

namespace bosk::omp {
namespace {

/// Nobody keeps books of what else runs: OpenMP's threads are on their workers' own queues.
bool find_nodes(const memory::AreaTable& areas, base::MappedArray<policies::NodeState>* nodes) {
  const topology::Machine& machine = areas.nodes().machine();
  if (!nodes->resize(machine.n_nodes)) return false;
  for (memory::NodeIndex node = 0; node < machine.n_nodes; ++node)
    if (areas.nodes().usable(node))
      (*nodes)[node].free_bytes = memory::memory_of_node(areas.nodes(), node).free;
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu) ++(*nodes)[machine.node_of_pu(pu)].pus;
  return true;
}

/// False: nothing moves.
bool carry_out(memory::AreaTable& areas, const policies::DataPlan& plan) {
  policies::MemoryEvent event;
  policies::DataMoved moved;
  policies::move_data(areas, plan, &moved);
  event.action = plan.action;
  event.forced = base::memory_moves() != base::MemoryMoves::kAuto;
  event.unknown = plan.unknown;
  event.rounds = plan.rounds;
  std::copy_n(plan.costs, policies::kMemoryActions, event.costs);
  event.pages = moved.pages;
  event.areas = moved.areas;
  event.marked = moved.marked;
  event.stayed = moved.stayed;
  policies::note_memory_event(event);
  return moved.areas + moved.marked != 0;
}

}  // namespace

void TeamUsers::clear() {
  users_.clear();
  uses_.clear();
}

bool TeamUsers::add(memory::AreaTable& areas, memory::OwnerId owner, uint32_t node,
                    uint32_t threads, bool refresh) {
  const uint32_t room = areas.uses_of(owner, nullptr, 0);
  if (room == 0) return true;
  if (!found_.resize(room)) return false;
  const uint32_t found = std::min(areas.uses_of(owner, found_.data(), room), room);
  const policies::MemoryUser user{node, threads, uses_.size(), found};
  for (uint32_t i = 0; i < found; ++i) {
    if (refresh) memory::refresh_area(areas, found_[i].area);
    if (!uses_.push({found_[i], 1})) return false;
  }
  return users_.push(user);
}

void TeamUsers::put_into(policies::MemoryQuestion* question) const {
  question->users = users_.data();
  question->n_users = users_.size();
  question->uses = uses_.data();
  question->n_uses = uses_.size();
}

void TeamUsers::release() {
  users_.release();
  uses_.release();
  found_.release();
}

bool decide_for_users(memory::AreaTable& areas, const TeamUsers& users) {
  const memory::CostTable* costs = costs_of(areas.nodes().machine());
  if (costs == nullptr || costs->n_nodes != areas.nodes().count() || users.empty()) return false;
  base::MappedArray<policies::NodeState> nodes;
  policies::DataPlan plan;
  bool moves = false;
  if (find_nodes(areas, &nodes)) {
    policies::MemoryQuestion question{};
    question.areas = &areas;
    question.costs = costs;
    users.put_into(&question);
    question.nodes = nodes.data();
    question.allowed = policies::data_actions(base::memory_moves());
    moves = policies::plan_data(question, &plan) && carry_out(areas, plan);
  }
  plan.release();
  nodes.release();
  return moves;
}

}  // namespace bosk::omp
