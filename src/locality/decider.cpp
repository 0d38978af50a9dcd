// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "locality/decider.h"

#include <algorithm>
#include <new>

#include "base/sleeping_lock.h"
#include "locality/costs.h"
#include "memory/node_stats.h"
#include "policies/memory/decision_log.h"

namespace bosk::locality {
namespace {

using policies::action_bit;
using policies::MemoryAction;

constinit base::SleepingLock deciding;

}  // namespace

bool Decider::prepare() {
  if (users_.empty()) return false;
  const topology::Machine& machine = areas_.nodes().machine();
  costs_ = costs_of(machine);
  if (costs_ == nullptr || costs_->n_nodes != areas_.nodes().count() ||
      !nodes_.resize(machine.n_nodes))
    return false;
  for (memory::NodeIndex node = 0; node < machine.n_nodes; ++node)
    if (areas_.nodes().usable(node))
      nodes_[node].free_bytes = memory::memory_of_node(areas_.nodes(), node).free;
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu) ++nodes_[machine.node_of_pu(pu)].pus;
  return true;
}

bool Decider::plan(uint32_t allowed, policies::DataPlan* plan) const {
  policies::MemoryQuestion question{};
  question.areas = &areas_;
  question.costs = costs_;
  users_.put_into(&question);
  question.nodes = nodes_.data();
  question.allowed = allowed;
  return policies::plan_data(question, plan);
}

void Decider::bring_data(base::MemoryMoves moves, policies::DataMoved* moved) const {
  const uint32_t allowed = policies::data_actions(moves);
  if (allowed == 0) return;
  policies::DataPlan answer;
  if (plan(allowed, &answer)) {
    bring(answer, moved);
    note_decision(answer, *moved, moves);
  }
  answer.release();
}

bool bring_data(memory::AreaTable& areas, const Users& users, base::MemoryMoves moves) {
  Decider decider(areas, users);
  policies::DataMoved moved;
  if (decider.prepare()) decider.bring_data(moves, &moved);
  return moved.anything();
}

void note_decision(const policies::DataPlan& plan, const policies::DataMoved& moved,
                   base::MemoryMoves moves) {
  policies::MemoryEvent event;
  event.action = plan.action;
  event.forced = moves != base::MemoryMoves::kAuto;
  event.unknown = plan.unknown;
  event.rounds = plan.rounds;
  std::copy_n(plan.costs, policies::kMemoryActions, event.costs);
  event.pages = moved.pages;
  event.areas = moved.areas;
  event.marked = moved.marked;
  event.stayed = moved.stayed;
  policies::note_memory_event(event);
}

bool is_worth_marking(const memory::CostTable& costs, const uint64_t* bytes_on,
                      memory::NodeIndex node, uint32_t times, uint8_t use) {
  base::MappedArray<policies::UsedArea> parts;
  base::MappedArray<policies::AreaUse> uses;
  base::MappedArray<policies::NodeState> nodes;
  bool enough = nodes.resize(costs.n_nodes);
  for (memory::NodeIndex at = 0; enough && at < costs.n_nodes; ++at) {
    nodes[at] = {UINT64_MAX, 1, 0};
    if (bytes_on[at] == 0) continue;
    enough = uses.push({parts.size(), (use & memory::kReads) != 0 ? 1.0F : 0.0F,
                        (use & memory::kWrites) != 0 ? 1.0F : 0.0F, 1}) &&
             parts.push({at, bytes_on[at]});
  }
  policies::MemoryDecision decision;
  if (enough && !parts.empty()) {
    const policies::UsingEntity entity{node, 1, 0, uses.size(), false};
    policies::MemorySituation situation{};
    situation.costs = &costs;
    situation.entities = &entity;
    situation.n_entities = 1;
    situation.areas = parts.data();
    situation.n_areas = parts.size();
    situation.uses = uses.data();
    situation.n_uses = uses.size();
    situation.nodes = nodes.data();
    situation.rounds = policies::rounds_of(times);
    situation.allowed = action_bit(MemoryAction::kNothing) | action_bit(MemoryAction::kNextTouch);
    policies::decide_memory(situation, &decision);
  }
  const bool marks = decision.action == MemoryAction::kNextTouch;
  decision.release();
  parts.release();
  uses.release();
  nodes.release();
  return marks;
}

OneDecides::OneDecides() { deciding.lock(); }
OneDecides::~OneDecides() { deciding.unlock(); }
void forget_deciding_after_fork() { new (&deciding) base::SleepingLock; }

}  // namespace bosk::locality
