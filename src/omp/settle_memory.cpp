// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whose memory is looked after when regions open, and where these are at home.
#include "omp/settle_memory.h"

#include <algorithm>

#include "base/memory_moves_setting.h"
#include "memory/manager.h"
#include "omp/binding.h"
#include "omp/environment.h"
#include "omp/follow_memory.h"
#include "omp/loads.h"
#include "omp/placing.h"
#include "omp/team_memory.h"
#include "omp/team_users.h"
#include "policies/memory/data_plan.h"
#include "policies/memory/decision_log.h"
#include "policies/memory/seat_order.h"
#include "sched/homes.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

/// With less than so much near that was not an exchange is not worth what it costs: some 10 us a member and cold caches.
constexpr uint64_t kLeastToExchange = 64 * 1024;

/// The members of a team, as users of what is attached to them.
bool find_users(memory::AreaTable& areas, TeamMemory* memory, uint32_t size, TeamUsers* users) {
  const auto add = [&](const MemoryOwner& owner, const HomeNode& home, uint32_t threads) {
    // relaxed: a node, which carries nothing.
    const uint32_t node = home.load(std::memory_order_relaxed) & ~kMoved;
    return users->add(areas, owner.id(), node == kUnknownHome ? memory::kNoNode : node, threads,
                      true);
  };
  // Of the team as a whole all members use it alike.
  if (!add({memory, MemoryOwner::kWholeTeam}, memory->node, size)) return false;
  MemberMemory* members = memory->members.load(std::memory_order_acquire);
  const uint32_t n = members != nullptr ? std::min(members->count, size) : 0;
  for (uint32_t i = 0; i < n; ++i)
    if (members->footprints()[i].load(std::memory_order_relaxed) != nullptr &&
        !add({memory, i}, members->nodes()[i], 1))
      return false;
  return true;
}

}  // namespace

bool settles_memory() {
  return policies::data_actions(base::memory_moves()) != 0 && placed_by_memory();
}

namespace {

/// Where the members of the region that is about to open will run.
class NodesOfMembers {
 public:
  NodesOfMembers(const sched::Thread* me, const topology::Machine& machine,
                 uint32_t proc_bind_clause, uint32_t size)
      : pool_(me->pool),
        machine_(machine),
        places_(layout_of_next(me->member, proc_bind_clause, size)) {}
  uint32_t operator[](uint32_t member) const { return machine_.node_of_pu(pu_of(member)); }

 private:
  uint32_t pu_of(uint32_t member) const {
    const uint32_t seat = sched::pu_of(pool_, machine_, member);
    if (!places_) return seat;
    const auto cpus = process_icvs().places->ranges(places_->of(member).place);
    // Of an invented machine places are still CPUs of the real one.
    const uint32_t pu = cpus.empty() ? topology::kNone : machine_.pu_of_os(cpus.front().first);
    return pu != topology::kNone ? pu : seat;
  }

  const sched::Pool* pool_;
  const topology::Machine& machine_;
  std::optional<PlaceLayout> places_;
};

void note_exchange() {
  policies::MemoryEvent event;
  event.action = policies::MemoryAction::kThreads;
  event.forced = base::memory_moves() != base::MemoryMoves::kAuto;
  policies::note_memory_event(event);
}

/// The members of a level-1 team, with all that they open, go to what they work on by exchanging their seats. False: to be tried again.
bool exchange_for_memory(sched::Pool* pool, memory::AreaTable& areas, TeamMemory* memory,
                         uint32_t size) {
  if (!base::moves_threads(base::memory_moves())) return true;
  const topology::Machine& machine = areas.nodes().machine();
  base::MappedArray<uint32_t> part_of;
  TeamUsers looked_at;  // where the pages are now
  sched::Exchange done = sched::Exchange::kStay;
  if (part_of.resize(size) && sched::parts_of_members(pool, machine, size, part_of.data()) &&
      find_users(areas, memory, size, &looked_at) &&
      policies::order_seats(machine, memory->footprints(), size, kLeastToExchange, part_of.data()))
    done = sched::exchange_seats(pool, size, part_of.data());
  if (done == sched::Exchange::kDone) {
    sched::keep_nodes(pool);
    note_exchange();
  }
  looked_at.release();
  part_of.release();
  return done != sched::Exchange::kLater;
}

void settle_outer_team(const sched::Thread* me, const TeamLoads* loads, uint32_t size,
                       uint32_t proc_bind_clause) {
  if (loads == nullptr) return;
  // acquire: with the footprints.
  TeamMemory* memory = loads->memory.load(std::memory_order_acquire);
  if (memory == nullptr || !placed_by_memory()) return;
  const uint64_t stamp = memory->stamp.load(std::memory_order_acquire);
  sched::Pool* pool = me->pool;
  if (memory->settled.load(std::memory_order_relaxed) == stamp &&
      memory->settled_seats.load(std::memory_order_relaxed) ==
          pool->seats.load(std::memory_order_relaxed))
    return;
  memory::AreaTable* areas = memory::areas();
  if (areas == nullptr || size > pool->worker_limit) return;
  const bool decided = layout_of_next(me->member, proc_bind_clause, size).has_value() ||
                       exchange_for_memory(pool, *areas, memory, size);
  memory->settled.store(decided ? stamp : 0, std::memory_order_relaxed);
  memory->settled_seats.store(pool->seats.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
  // What the members open teams for is where those are at home, who are placed later.
  if (!settles_memory() || memory->opens_teams.load(std::memory_order_relaxed)) return;
  const NodesOfMembers nodes(me, areas->nodes().machine(), proc_bind_clause, size);
  MemberMemory* members = memory->members.load(std::memory_order_acquire);
  for (uint32_t i = 0; members != nullptr && i < std::min(members->count, size); ++i)
    members->nodes()[i].store(nodes[i], std::memory_order_relaxed);
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
  TeamUsers users;
  if (find_users(*areas, memory, size, &users) && !users.empty()) {
    // Whatever is decided goes by where the workers have their seats.
    sched::keep_nodes(pool);
    decide_for_users(*areas, users);
  }
  users.release();
}

void ready_memory(sched::Thread* me, const TeamLoads* loads, uint32_t size,
                  uint32_t proc_bind_clause) {
  settle_outer_team(me, loads, size, proc_bind_clause);
  look_after_marks();
}

}  // namespace bosk::omp
