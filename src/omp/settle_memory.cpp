// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks what is to be done about the memory of teams, and does it.
//
// The same decision as for bubbles (policies/memory/data_plan.h), but memory only: the threads have been placed, and the
// members of level-1 teams and the openers of nested ones never leave their workers.
#include "omp/settle_memory.h"

#include <algorithm>

#include "base/memory_moves_setting.h"
#include "memory/manager.h"
#include "memory/node_stats.h"
#include "omp/follow_memory.h"
#include "omp/loads.h"
#include "omp/team_home.h"
#include "omp/team_memory.h"
#include "policies/memory/data_plan.h"
#include "policies/memory/decision_log.h"
#include "sched/homes.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

using base::MappedArray;

/// The members of a team, as users of what is attached to them.
class Members {
 public:
  Members(memory::AreaTable& areas, TeamMemory* memory, uint32_t size)
      : areas_(areas), memory_(memory), size_(size) {}
  ~Members() {
    users_.release();
    uses_.release();
    found_.release();
    nodes_.release();
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  void settle(const memory::CostTable& costs, sched::Pool* pool) {
    if (!find_users() || uses_.empty() || !find_nodes()) return;
    // Whatever is decided goes by where the workers have their seats.
    sched::keep_nodes(pool);
    policies::MemoryQuestion question{};
    question.areas = &areas_;
    question.costs = &costs;
    question.users = users_.data();
    question.n_users = users_.size();
    question.uses = uses_.data();
    question.n_uses = uses_.size();
    question.nodes = nodes_.data();
    question.allowed = policies::data_actions(base::memory_moves());
    policies::DataPlan plan;
    if (policies::plan_data(question, &plan)) {
      policies::MemoryEvent event;
      policies::DataMoved moved;
      policies::move_data(areas_, plan, &moved);
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
    }
    plan.release();
  }

 private:
  bool find_users() {
    // Of the team as a whole all members use it alike.
    if (!add_user({memory_, MemoryOwner::kWholeTeam}, memory_->node, size_)) return false;
    MemberMemory* members = memory_->members.load(std::memory_order_acquire);
    const uint32_t n = members != nullptr ? std::min(members->count, size_) : 0;
    for (uint32_t i = 0; i < n; ++i)
      if (members->footprints()[i].load(std::memory_order_relaxed) != nullptr &&
          !add_user({memory_, i}, members->nodes()[i], 1))
        return false;
    return true;
  }

  bool add_user(const MemoryOwner& owner, const HomeNode& home, uint32_t threads) {
    const memory::OwnerId id = owner.id();
    const uint32_t room = areas_.uses_of(id, nullptr, 0);
    if (room == 0) return true;
    if (!found_.resize(room)) return false;
    const uint32_t found = std::min(areas_.uses_of(id, found_.data(), room), room);
    // relaxed: a node, which carries nothing.
    const uint32_t node = home.load(std::memory_order_relaxed) & ~kMoved;
    policies::MemoryUser user{node == kUnknownHome ? memory::kNoNode : node, threads, uses_.size(),
                              found};
    for (uint32_t i = 0; i < found; ++i) {
      policies::refresh_area(areas_, found_[i].area);
      if (!uses_.push({found_[i], 1})) return false;
    }
    return users_.push(user);
  }

  /// Nobody keeps books of what else runs: OpenMP's threads are on their workers' own queues.
  bool find_nodes() {
    const topology::Machine& machine = areas_.nodes().machine();
    if (!nodes_.resize(machine.n_nodes)) return false;
    for (memory::NodeIndex node = 0; node < machine.n_nodes; ++node)
      if (areas_.nodes().usable(node))
        nodes_[node].free_bytes = memory::memory_of_node(areas_.nodes(), node).free;
    for (uint32_t pu = 0; pu < machine.n_pus; ++pu) ++nodes_[machine.node_of_pu(pu)].pus;
    return true;
  }

  memory::AreaTable& areas_;
  TeamMemory* memory_;
  uint32_t size_;
  MappedArray<policies::MemoryUser> users_;
  MappedArray<policies::MemoryUse> uses_;
  MappedArray<memory::AreaUse> found_;
  MappedArray<policies::NodeState> nodes_;
};

}  // namespace

bool settles_memory() {
  return policies::data_actions(base::memory_moves()) != 0 && placed_by_memory();
}

namespace {

void settle_outer_team(const sched::Thread* me, const TeamLoads* loads, uint32_t size) {
  if (loads == nullptr) return;
  // acquire: with the footprints.
  TeamMemory* memory = loads->memory.load(std::memory_order_acquire);
  // What the members open teams for is where those are at home, who are placed later.
  if (memory == nullptr || memory->opens_teams.load(std::memory_order_relaxed) || !settles_memory())
    return;
  const uint64_t stamp = memory->stamp.load(std::memory_order_acquire);
  if (memory->settled.exchange(stamp, std::memory_order_relaxed) == stamp) return;
  memory::AreaTable* areas = memory::areas();
  sched::Pool* pool = me->pool;
  if (areas == nullptr || size > pool->worker_limit) return;
  const topology::Machine& machine = areas->nodes().machine();
  MemberMemory* members = memory->members.load(std::memory_order_acquire);
  for (uint32_t i = 0; members != nullptr && i < std::min(members->count, size); ++i)
    members->nodes()[i].store(machine.node_of_pu(sched::pu_of(pool, machine, i)),
                              std::memory_order_relaxed);
  settle_memory(pool, memory, size);
}

}  // namespace

void settle_memory(sched::Pool* pool, TeamMemory* memory, uint32_t size) {
  memory::AreaTable* areas = memory::areas();
  if (areas == nullptr) return;
  // Who has been told of does not have to move because of it as well.
  const memory::CostTable* costs = costs_of(areas->nodes().machine());
  if (costs == nullptr || costs->n_nodes != areas->nodes().count()) return;
  forget_moves(memory);
  Members(*areas, memory, size).settle(*costs, pool);
}

void ready_memory(sched::Thread* me, const TeamLoads* loads, uint32_t size) {
  settle_outer_team(me, loads, size);
  look_after_marks();
}

}  // namespace bosk::omp
