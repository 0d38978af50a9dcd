// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whose memory is looked after when regions open, and where these are at home.
#include "omp/settle_memory.h"

#include <algorithm>

#include "base/memory_moves_setting.h"
#include "base/rounds.h"
#include "locality/decider.h"
#include "memory/manager.h"
#include "omp/binding.h"
#include "omp/environment.h"
#include "omp/follow_memory.h"
#include "omp/loads.h"
#include "omp/open_teams.h"
#include "omp/placing.h"
#include "omp/region_watch.h"
#include "omp/report.h"
#include "omp/team.h"
#include "omp/team_memory.h"
#include "policies/memory/decision_log.h"
#include "policies/memory/seat_order.h"
#include "sched/homes.h"
#include "sched/scheduler.h"
#include "sched/team_events.h"

namespace bosk::omp {
namespace {

/// With less than so much near that was not an exchange is not worth what it costs: some 10 us a member and cold caches.
constexpr uint64_t kLeastToExchange = 64 * 1024;

/// The members of a team, as users of what is attached to them. `refresh`: the kernel is asked where the pages are.
bool find_users(memory::AreaTable& areas, TeamMemory* memory, uint32_t size, bool refresh,
                locality::Users* users) {
  const auto add = [&](const MemoryOwner& owner, const HomeNode& home, uint32_t threads) {
    // relaxed: a node, which carries nothing.
    const uint32_t node = home.load(std::memory_order_relaxed) & ~kMoved;
    users->begin_user(node == kUnknownHome ? memory::kNoNode : node, threads);
    return users->add_all_of(areas, owner.id(), refresh);
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

/// `asked`: just now, where the pages are.
void settle_team(sched::Pool* pool, TeamMemory* memory, uint32_t size, bool asked) {
  memory::AreaTable* areas = memory::areas();
  if (areas == nullptr) return;
  // Who has been told of does not have to move because of it as well.
  forget_moves(memory);
  locality::Users users;
  if (find_users(*areas, memory, size, !asked, &users) && !users.empty()) {
    // Whatever is decided goes by where the workers have their seats.
    sched::keep_nodes(pool);
    locality::bring_data(*areas, users, base::memory_moves());
  }
  users.release();
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

/// The members of a level-1 team, with all that they open, go to what they work on by exchanging their seats. *asked: the kernel has
/// been, where the pages are.
sched::Exchange exchange_for_memory(sched::Pool* pool, memory::AreaTable& areas, TeamMemory* memory,
                                    uint32_t size, bool* asked) {
  *asked = false;
  if (!base::moves_threads(base::memory_moves())) return sched::Exchange::kStay;
  const topology::Machine& machine = areas.nodes().machine();
  base::MappedArray<uint32_t> part_of;
  locality::Users looked_at;
  sched::Exchange done = sched::Exchange::kStay;
  if (part_of.resize(size) && sched::parts_of_members(pool, machine, size, part_of.data()) &&
      (*asked = find_users(areas, memory, size, true, &looked_at)) &&
      policies::order_seats(machine, memory->footprints(), size, kLeastToExchange, part_of.data()))
    done = sched::exchange_seats(pool, size, part_of.data());
  if (done == sched::Exchange::kDone) {
    sched::keep_nodes(pool);
    note_exchange();
  }
  looked_at.release();
  part_of.release();
  return done;
}

/// `region`: what it is opened for.
void settle_outer_team(const sched::Thread* me, RegionFunction region, const TeamLoads* loads,
                       uint32_t size, uint32_t proc_bind_clause) {
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
  bool asked = false;
  const sched::Exchange seats = layout_of_next(me->member, proc_bind_clause, size).has_value()
                                    ? sched::Exchange::kStay
                                    : exchange_for_memory(pool, *areas, memory, size, &asked);
  if (seats == sched::Exchange::kDone && watching())
    sched::note_team_event(number_of_region(region), sched::TeamEvent::kExchanged);
  memory->settled.store(seats != sched::Exchange::kLater ? stamp : 0, std::memory_order_relaxed);
  memory->settled_seats.store(pool->seats.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
  // What the members open teams for is where those are at home, who are placed later.
  if (!settles_memory() || memory->opens_teams.load(std::memory_order_relaxed)) return;
  const NodesOfMembers nodes(me, areas->nodes().machine(), proc_bind_clause, size);
  MemberMemory* members = memory->members.load(std::memory_order_acquire);
  for (uint32_t i = 0; members != nullptr && i < std::min(members->count, size); ++i)
    members->nodes()[i].store(nodes[i], std::memory_order_relaxed);
  settle_team(pool, memory, size, asked);
}

}  // namespace

void settle_memory(sched::Pool* pool, TeamMemory* memory, uint32_t size) {
  settle_team(pool, memory, size, false);
}

namespace {

/// Bytes attached to the team as a whole and to its members but the first: on the node, and elsewhere.
void count_bytes(const memory::AreaTable& areas, const TeamMemory& memory, uint32_t node,
                 uint64_t* there, uint64_t* elsewhere) {
  const policies::TeamFootprints footprints = memory.footprints();
  const auto add = [&](policies::TeamFootprints::OnNodes on_nodes) {
    if (on_nodes == nullptr) return;
    for (uint32_t i = 0; i < areas.nodes().count(); ++i)
      *(i == node ? there : elsewhere) += on_nodes[i].load(std::memory_order_relaxed);
  };
  add(footprints.team);
  for (uint32_t i = 1; i < footprints.n_members; ++i) add(footprints.of(i));
}

/// relaxed, as all of it: a node carries nothing.
void set_homes(TeamMemory* memory, uint32_t opener_node, uint32_t node) {
  memory->node.store(node, std::memory_order_relaxed);
  MemberMemory* members = memory->members.load(std::memory_order_acquire);
  for (uint32_t i = 0; members != nullptr && i < members->count; ++i)
    members->nodes()[i].store(i == 0 ? opener_node : node, std::memory_order_relaxed);
}

}  // namespace

bool bring_along(sched::Pool* pool, TeamMemory* memory, uint32_t size, uint32_t opener_node,
                 uint32_t home_node, uint32_t node) {
  memory::AreaTable* areas = memory::areas();
  if (areas == nullptr) return false;
  set_homes(memory, opener_node, node);
  locality::Users users;
  bool comes = false;
  if (find_users(*areas, memory, size, true, &users) && !users.empty()) {
    sched::keep_nodes(pool);
    comes = locality::bring_data(*areas, users, base::memory_moves());
  }
  users.release();
  uint64_t there = 0;
  uint64_t elsewhere = 0;
  if (!comes) count_bytes(*areas, *memory, node, &there, &elsewhere);
  if (comes || there > elsewhere) return true;
  set_homes(memory, opener_node, home_node);
  return false;
}

namespace {

/// Now, inside of the region. False: nothing moves.
bool redecide_team(sched::Thread* me, const Team* team, TeamMemory* memory) {
  memory::AreaTable& areas = *memory::areas();
  sched::Pool* pool = me->pool;
  const uint32_t size = team->size;
  const uint64_t stamp = memory->stamp.load(std::memory_order_acquire);
  const bool on_workers = team->level == 1 && team->native_count > 1 && pool->outer == nullptr;
  bool asked = false;
  sched::Exchange seats = sched::Exchange::kStay;
  if (on_workers && team->partition_count == 0 && size <= pool->worker_limit)
    seats = exchange_for_memory(pool, areas, memory, size, &asked);
  const bool exchanged = seats == sched::Exchange::kDone;
  if (exchanged) sched::note_team_event(team, sched::TeamEvent::kExchanged);
  if (on_workers && seats != sched::Exchange::kLater) {
    memory->settled.store(stamp, std::memory_order_relaxed);
    memory->settled_seats.store(pool->seats.load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
  }
  // Members that open teams are at home around their new seats when they open the next one, which settles what is theirs.
  if (!settles_memory() || (exchanged && memory->opens_teams.load(std::memory_order_relaxed)))
    return exchanged;
  OpenTeams open;
  locality::Users users;
  bool moved = false;
  if (list_open_team(me, areas.nodes().machine(), memory, &open) &&
      add_users(areas, open, open.teams[0], !asked, &users) && !users.empty()) {
    sched::keep_nodes(pool);
    moved = locality::bring_data(areas, users, base::memory_moves());
  }
  users.release();
  open.release();
  return exchanged || moved;
}

}  // namespace

int redecide_memory(sched::Thread* me, bool when_all) {
  Team* team;
  TeamMemory* memory;
  if (const int error = find_open_team(me, &team, &memory)) return error;
  if (when_all && !base::comes_last(&memory->reached, team->size)) return 0;
  if (!placed_by_memory()) return 0;
  // One decides at a time, and again for those who came meanwhile: nobody waits. acq_rel: with what they attached.
  if (memory->undecided.fetch_add(1, std::memory_order_acq_rel) != 0) return 0;
  bool moves = false;
  for (uint32_t seen = 1; seen != 0;) {
    moves |= redecide_team(me, team, memory);
    seen = memory->undecided.fetch_sub(seen, std::memory_order_acq_rel) - seen;
  }
  return moves ? 1 : 0;
}

void ready_memory(sched::Thread* me, RegionFunction region, const TeamLoads* loads, uint32_t size,
                  uint32_t proc_bind_clause) {
  settle_outer_team(me, region, loads, size, proc_bind_clause);
  look_after_marks();
}

}  // namespace bosk::omp
