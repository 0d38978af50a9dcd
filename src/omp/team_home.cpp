// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places nested teams.
#include "omp/team_home.h"

#include "base/spinlock.h"
#include "omp/follow_memory.h"
#include "omp/placing.h"
#include "omp/settle_memory.h"
#include "omp/team.h"
#include "policies/relations.h"
#include "sched/homes.h"
#include "sched/scheduler.h"
#include "sched/team_events.h"

namespace bosk::omp {
namespace {

using topology::Machine;

/// The team whose member opened `team`, and which member that was; null: an initial thread. Teams of one
/// are at home where their opener is.
const Team* find_parent(const Team* team, uint32_t* index) {
  do {
    *index = team->opener_index;
    team = parent_team(team);
  } while (team != nullptr && team->size == 1);
  return team;
}

/// Who opens a team, and from where.
struct Opener {
  const Team* parent;  ///< see find_parent()
  uint32_t index;
  uint32_t pu;                ///< of its worker
  const sched::Seats* seats;  ///< of the pool
};

uint32_t depth_of(const Team* team) { return team->active_level - 1U; }

/// Members of the outermost team, if that is the parent, else 0. Level-1 members stay on the workers of
/// their number, which may lie outside of their homes: the policy then goes by where the opener is.
uint32_t size_if_outermost(const Team* parent) {
  if (parent == nullptr) return 1;
  return parent->native_count > 1 ? parent->size : 0;
}

TeamLoads* loads_of(const Team* team) {
  // acquire: a member may have set it while the team runs.
  return team != nullptr ? team->loads.load(std::memory_order_acquire) : nullptr;
}

/// Teams whose members are at home elsewhere now, and have memory. Of two places at most: the team's that opens,
/// and its opener's.
struct Movers {
  TeamMemory* team[2] = {};
  uint32_t size[2] = {};

  void add(TeamMemory* memory, uint32_t members) {
    const uint32_t at = team[0] != nullptr ? 1 : 0;
    team[at] = memory;
    size[at] = members;
  }
};

/// Members of the outermost team cannot leave their workers: under a policy that goes by memory, what they open is at home around these,
/// where it was touched first, and where it comes to. Not of members that are bound to places.
bool stay_at_seats(const Placing& placing, const Team* team, const sched::Seats* seats) {
  return placing.engine.minds_memory() && seats != nullptr && team->partition_count == 0 &&
         seats->team == team->size && seats->count == placing.machine->n_pus;
}

/// Asks the policy for a team of which something is known. Under the lock of `loads`.
void place_by_hints(const Placing& placing, TeamLoads* loads, policies::TeamShape shape,
                    policies::TeamPlacement* answer) {
  policies::TeamFootprints footprints;
  // acquire: with the footprints.
  const TeamMemory* memory = loads->memory.load(std::memory_order_acquire);
  if (memory != nullptr) {
    footprints = memory->footprints();
    shape.footprints = &footprints;
  }
  if (read_loads(*loads, loads->scratch)) shape.loads = loads->scratch;
  placing.engine.place_team(shape, answer);
}

/// `first_node`: of the first member; kUnknownHome: as the answer says.
void add_mover(const Placing& placing, TeamLoads* loads, const policies::TeamPlacement& answer,
               uint32_t first_node, Movers* movers) {
  TeamMemory* memory = loads->memory.load(std::memory_order_acquire);
  if (memory == nullptr) return;
  memory->opens_teams.store(true, std::memory_order_relaxed);
  // Where memory comes to its members it does so also if others have been attached to them.
  if (note_homes(*placing.machine, memory, answer, first_node) || settles_memory())
    movers->add(memory, loads->size);
}

/// The home of a member of an outermost team of which loads are known. All who open regions inside ask;
/// the policy is asked once.
uint32_t home_by_load(const Placing& placing, const Team* parent, TeamLoads* loads, uint32_t index,
                      TeamHome* home, Movers* movers) {
  base::SpinGuard guard(loads->lock);
  if (loads->homes_stamp != home->outer_loads || loads->homes_seats != home->outer_seats) {
    const bool shares_out = loads->told.load(std::memory_order_relaxed);
    if (shares_out || !stay_at_seats(placing, parent, home->outer_seats) ||
        !loads->homes.set_around(*placing.machine, home->outer_seats->pu_of_worker(), loads->size))
      place_by_hints(placing, loads, {.members = loads->size}, &loads->homes);
    add_mover(placing, loads, loads->homes, kUnknownHome, movers);
    loads->homes_stamp = home->outer_loads;
    loads->homes_seats = home->outer_seats;
  }
  return loads->homes.domain_of(index);
}

/// The home of the opener, and what that depends on.
uint32_t home_of_opener(const Placing& placing, const Opener& opener, TeamHome* home,
                        Movers* movers) {
  const Team* parent = opener.parent;
  const uint32_t index = opener.index;
  home->outermost_size = size_if_outermost(parent);
  home->outer_index = index;
  home->outer_serial = home->outer_loads = 0;
  if (home->outermost_size == 0) {
    const TeamHome& around = parent->home_on_machine;
    if (!around.placement.is_list()) {
      home->outer.copy_formula(around.placement);
    } else {
      home->outer_serial = around.serial;
    }
    return around.placement.domain_of(index);
  }
  TeamLoads* loads = loads_of(parent);
  home->outer_loads = stamp_of(loads);
  home->outer_seats = opener.seats;
  if (home->outer_loads != 0) return home_by_load(placing, parent, loads, index, home, movers);
  if (parent != nullptr && stay_at_seats(placing, parent, opener.seats))
    return policies::domain_around_seat(*placing.machine, parent->size,
                                        opener.seats->pu_of_worker()[index])
        .id;
  placing.engine.place_team({.members = home->outermost_size}, &home->outer);
  return home->outer.domain_of(index);
}

void place_members(const Placing& placing, uint32_t opener_home, uint32_t pu, const Team* team,
                   TeamHome* home, Movers* movers) {
  TeamLoads* loads = loads_of(team);
  home->own_loads = stamp_of(loads);
  home->seat = topology::kNone;
  policies::TeamShape shape;
  shape.members = team->size;
  shape.opener_domain = opener_home;
  shape.opener_pu = pu;
  shape.depth = home->depth;
  if (home->own_loads == 0) {
    placing.engine.place_team(shape, &home->placement);
    sched::note_team_event(team, sched::TeamEvent::kPlaced);
    return;
  }
  base::SpinGuard guard(loads->lock);
  uint32_t first_node = kUnknownHome;
  // acquire: a member may have attached something to the team while it ran.
  if (TeamMemory* memory = loads->memory.load(std::memory_order_acquire)) {
    const Machine& machine = *placing.machine;
    const uint32_t opener_node = machine.node_of_pu(pu);
    const uint32_t there = memory->resettlement.pu_for(opener_node);
    if (there != Resettlement::kWithOpener) {
      shape.opener_pu = there;
      shape.opener_domain = machine.level(topology::Kind::kNode)->of_pu[there];
      first_node = opener_node;
    }
  }
  home->seat = policies::relations::place_team(*placing.machine, relation_of(*loads), shape,
                                               &home->placement);
  const bool seated = home->seat != topology::kNone;
  if (!seated) place_by_hints(placing, loads, shape, &home->placement);
  sched::note_team_event(team,
                         seated ? sched::TeamEvent::kSeated : sched::TeamEvent::kPlacedByHints);
  add_mover(placing, loads, home->placement, first_node, movers);
}

/// Has anything been attached to a member of the team, or to the one who opens it?
bool works_on_memory(const Team* parent, uint32_t index, const Team* team) {
  const auto memory_of = [](const Team* which) -> const TeamMemory* {
    const TeamLoads* loads = loads_of(which);
    // acquire: with the footprints.
    return loads != nullptr ? loads->memory.load(std::memory_order_acquire) : nullptr;
  };
  if (memory_of(team) != nullptr) return true;
  const TeamMemory* outer = memory_of(parent);
  if (outer == nullptr) return false;
  const policies::TeamFootprints footprints = outer->footprints();
  return footprints.team != nullptr || footprints.of(index) != nullptr;
}

bool is_on_one_node(const Machine& machine, const topology::Domain& domain) {
  return machine.node_of_pu(domain.first_pu) == machine.node_of_pu(domain.last_pu);
}

/// Where the team's memory could come along, if another node takes it from its own: of its place; else null.
Resettlement* find_resettlement(const Machine& machine, const Team* team) {
  const TeamHome& home = team->home_on_machine;
  const TeamLoads* loads = loads_of(team);
  if (loads == nullptr || !settles_memory() || home.seat != topology::kNone ||
      home.placement.gang_ticks() != 0 || home.placement.is_list() ||
      home.placement.is_together() ||
      !is_on_one_node(machine, machine.domain_array[home.placement.scope()]))
    return nullptr;
  TeamMemory* memory = loads->memory.load(std::memory_order_acquire);
  return memory != nullptr ? &memory->resettlement : nullptr;
}

/// The smallest domain around its own in which there is a worker for each member. O(workers · levels).
uint64_t reach_of_gang(const Machine& machine, const Team* team) {
  const sched::Pool* pool = team->opened_on()->pool;
  const uint32_t workers = pool->worker_count.load(std::memory_order_relaxed);
  const policies::TeamPlacement& placement = team->home_on_machine.placement;
  const topology::Domain* domain =
      placement.is_list() ? &machine.root() : &machine.domain_array[placement.scope()];
  for (; domain->parent != nullptr; domain = domain->parent) {
    uint32_t seated = 0;
    for (uint32_t i = 0; i < workers; ++i)
      seated += domain->contains_pu(sched::pu_of(pool, machine, i)) ? 1 : 0;
    if (seated >= team->size) break;
  }
  return sched::reach_of(domain->first_pu, domain->last_pu);
}

/// Which others may take the team's ghosts and threads: the PUs of its seat, if it has one; of its domain if the policy wants it together; those of its
/// node where it has its memory, or that comes to it; else all.
uint64_t find_reach(const Placing& placing, const Team* parent, uint32_t index, const Team* team) {
  const TeamHome& home = team->home_on_machine;
  const Machine& machine = *placing.machine;
  if (home.placement.gang_ticks() != 0) return reach_of_gang(machine, team);
  if (home.seat != topology::kNone) {
    const topology::Domain& seat = machine.domain_array[home.seat];
    return sched::reach_of(seat.first_pu, seat.last_pu);
  }
  if (home.placement.is_list()) return sched::kReachAll;
  const topology::Domain* domain = &machine.domain_array[home.placement.scope()];
  if (!home.placement.is_together()) {
    if (!placing.engine.minds_memory() || !works_on_memory(parent, index, team) ||
        (home.resettlement != nullptr && home.resettlement->lets_in()))
      return sched::kReachAll;
    if (!is_on_one_node(machine, *domain)) return sched::kReachAll;
    while (domain->parent != nullptr && is_on_one_node(machine, *domain->parent))
      domain = domain->parent;
  }
  return sched::reach_of(domain->first_pu, domain->last_pu);
}

/// The PUs of the nodes that its members are at home on, from the first to the last.
uint64_t find_near(const Placing& placing, const Team* team) {
  const Machine& machine = *placing.machine;
  const topology::Level* nodes = machine.level(topology::Kind::kNode);
  // Without ticks members may spin for a ghost that nobody takes; with them the opener's worker starts it.
  if (!placing.keep_reach || nodes == nullptr) return sched::kReachAll;
  const policies::TeamPlacement& placement = team->home_on_machine.placement;
  uint32_t first_pu = topology::kNone;
  uint32_t last_pu = 0;
  const auto add = [&](uint32_t id) {
    const topology::Domain& domain = machine.domain_array[id];
    if (domain.first_pu < first_pu) first_pu = domain.first_pu;
    if (domain.last_pu > last_pu) last_pu = domain.last_pu;
  };
  if (placement.is_list())
    placement.for_each_range([&](const policies::TeamRange& range) { add(range.domain); });
  else
    add(placement.scope());
  return sched::reach_of(machine.domain_array[nodes->of_pu[first_pu]].first_pu,
                         machine.domain_array[nodes->of_pu[last_pu]].last_pu);
}

/// relaxed: thieves read it as a preference.
void set_reach(const Placing& placing, const Opener& opener, Team* team) {
  team->reach.store(placing.keep_reach ? find_reach(placing, opener.parent, opener.index, team)
                                       : sched::kReachAll,
                    std::memory_order_relaxed);
}

/// Asks the policy, and keeps what its answer depends on.
Movers place(const Placing& placing, const Opener& opener, Team* team) {
  TeamHome& home = team->home_on_machine;
  Movers movers;
  const uint32_t opener_home = home_of_opener(placing, opener, &home, &movers);
  home.opener_pu = opener.pu;
  home.opener_home = opener_home;
  home.depth = depth_of(team);
  place_members(placing, opener_home, opener.pu, team, &home, &movers);
  // relaxed: only to tell answers apart; members read the team after they were started.
  home.serial = count_placed();
  team->next_home = home.placement.domain_of(team->ghost_at(1));
  if (home.outermost_size > 1) measure_loads_from_now_on();
  home.resettlement = placing.keep_reach ? find_resettlement(*placing.machine, team) : nullptr;
  set_reach(placing, opener, team);
  team->near.store(find_near(placing, team), std::memory_order_relaxed);
  team->adoption.forget();
  return movers;
}

/// Marks what those work on that have moved. Preemption is off before and after; returns the worker that the
/// opener is on then.
sched::Worker* follow_movers(sched::Thread* me, Team* team, const Movers& movers) {
  sched::leave(me);
  const bool settles = settles_memory();
  const bool by_memory = placed_by_memory();
  // Memory is where it is to stay.
  const bool only_threads = by_memory && !settles;
  if (by_memory) sched::keep_nodes(me->pool);
  for (uint32_t i = 0; i < 2; ++i) {
    if (movers.team[i] != nullptr && settles)
      settle_memory(me->pool, movers.team[i], movers.size[i]);
    if (movers.team[i] != nullptr && !settles && !only_threads) follow_moved(movers.team[i]);
  }
  sched::Worker* w = sched::enter(me);
  team->home.store(w, std::memory_order_relaxed);
  return w;
}

/// The team object was last used for a team that opened in the same way.
bool is_placed(const Team* team, const Opener& opener) {
  const Team* parent = opener.parent;
  const TeamHome& home = team->home_on_machine;
  if (home.opener_pu != opener.pu || home.outer_index != opener.index ||
      home.placement.members() != team->size || home.depth != depth_of(team))
    return false;
  const uint32_t outermost = size_if_outermost(parent);
  if (home.outermost_size != outermost || home.own_loads != stamp_of(loads_of(team))) return false;
  if (outermost != 0)
    return home.outer_loads == stamp_of(loads_of(parent)) && home.outer_seats == opener.seats;
  const TeamHome& around = parent->home_on_machine;
  if (around.placement.is_list()) return home.outer_serial == around.serial;
  return home.outer_serial == 0 && home.outer.same_formula(around.placement);
}

/// Only that another member of the same opener's team has opened it, who is at home on the same domain: the answer would be
/// the same one. Members that open regions in turn are, deep inside, all at home on one PU. By a formula, for a list
/// may have changed; and memory is a member's own.
bool is_placed_for_another(const Placing& placing, Team* team, const Opener& opener) {
  TeamHome& home = team->home_on_machine;
  const Team* parent = opener.parent;
  if (parent == nullptr || home.outermost_size != 0 || home.outer_index == opener.index)
    return false;
  const policies::TeamPlacement& around = parent->home_on_machine.placement;
  if (around.is_list() || opener.index >= around.members() || placing.engine.minds_memory() ||
      around.domain_of(opener.index) != home.opener_home ||
      !is_placed(team, {parent, home.outer_index, opener.pu, opener.seats}))
    return false;
  home.outer_index = opener.index;
  return true;
}

Opener find_opener(const sched::Worker* w, const Machine& machine, const Team* team) {
  Opener opener{};
  opener.parent = find_parent(team, &opener.index);
  opener.pu = sched::pu_of(w->pool, machine, w->index);
  // acquire: the seats.
  opener.seats = w->pool->seats.load(std::memory_order_acquire);
  return opener;
}

/// Another node has taken the team most of the time: its memory comes along, if that pays, and it is at home there. As follow_movers().
sched::Worker* resettle(sched::Thread* me, const Placing& placing, Team* team, uint64_t node_pus) {
  const Machine& machine = *placing.machine;
  const auto pu = static_cast<uint32_t>(node_pus);  // the first
  const uint32_t node = machine.node_of_pu(pu);
  TeamHome& home = team->home_on_machine;
  const uint32_t opener_node = machine.node_of_pu(home.opener_pu);
  // On one node: find_resettlement().
  const uint32_t home_node =
      machine.node_of_pu(machine.domain_array[home.placement.scope()].first_pu);
  TeamMemory* memory = loads_of(team)->memory.load(std::memory_order_acquire);
  sched::leave(me);
  const bool comes = bring_along(me->pool, memory, team->size, opener_node, home_node, node);
  sched::Worker* w = sched::enter(me);
  team->home.store(w, std::memory_order_relaxed);
  if (!comes) return w;
  sched::add_seen(&w->counts.teams_resettled);
  sched::note_team_event(team, sched::TeamEvent::kResettled);
  home.resettlement->settle(node, pu);
  const Movers movers = place(placing, find_opener(w, machine, team), team);
  return movers.team[0] != nullptr ? follow_movers(me, team, movers) : w;
}

/// It opens as it did last.
sched::Worker* open_again(sched::Thread* me, const Placing& placing, const Opener& opener,
                          Team* team) {
  Resettlement* resettlement = team->home_on_machine.resettlement;
  const bool adopted = team->adoption.is_known();
  if (resettlement != nullptr && resettlement->opens_again(adopted))
    set_reach(placing, opener, team);
  if (!adopted) return me->worker;
  const uint64_t node_pus = team->adoption.opens_again();
  if (resettlement == nullptr || node_pus == sched::kReachNobody) return me->worker;
  return resettle(me, placing, team, node_pus);
}

}  // namespace

static sched::Worker* place_where_opened(sched::Thread* me, Team* team) {
  const Placing* placing = known_placing();
  if (BOSK_UNLIKELY(placing == nullptr)) {
    sched::leave(me);
    placing = &find_placing();
    team->home.store(sched::enter(me), std::memory_order_relaxed);
  }
  sched::Worker* w = me->worker;
  sched::Pool* pool = w->pool;
  if (placing->machine == nullptr || pool->worker_limit == 1) {
    pool->placing.store(0, std::memory_order_relaxed);
    return w;
  }
  const Machine& machine = *placing->machine;
  // release: who sees it sees a complete machine, also if another thread has just read it.
  if (BOSK_UNLIKELY(pool->machine.load(std::memory_order_relaxed) == nullptr) &&
      placing->nearest_first)
    pool->machine.store(&machine, std::memory_order_release);
  // A native thread that opens a team and has all its ghosts taken has nobody to turn to, and else no ticks.
  if (BOSK_UNLIKELY(pool->keeps_nodes.load(std::memory_order_relaxed))) sched::arm_timer(w);
  // A member of one long region that opens others and does nothing else looks nowhere else.
  sched::look_if_due(w);
  const Opener opener = find_opener(w, machine, team);
  if (BOSK_UNLIKELY(!is_placed(team, opener)) && !is_placed_for_another(*placing, team, opener)) {
    const Movers movers = place(*placing, opener, team);
    if (BOSK_UNLIKELY(movers.team[0] != nullptr)) return follow_movers(me, team, movers);
  } else if (BOSK_UNLIKELY(team->adoption.is_known() ||
                           team->home_on_machine.resettlement != nullptr)) {
    return open_again(me, *placing, opener, team);
  }
  return w;
}

sched::Worker* place_nested_team(sched::Thread* me, Team* team) {
  sched::Worker* w = place_where_opened(me, team);
  const uint32_t ticks = team->home_on_machine.placement.gang_ticks();
  if (BOSK_LIKELY(ticks == 0) || w->pool->placing.load(std::memory_order_relaxed) == 0 ||
      team->together.load(std::memory_order_relaxed) == sched::Together::kGang)
    return w;
  return open_as_gang(me, team, ticks);
}

void place_outer_team(Team* team) {
  team->home_on_machine.opener_pu = topology::kNone;
  team->next_home = 0;
  team->reach.store(sched::kReachAll, std::memory_order_relaxed);
  team->near.store(sched::kReachAll, std::memory_order_relaxed);
}

}  // namespace bosk::omp
