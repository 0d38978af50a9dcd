// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where nested teams are at home on the machine: asks the policies (docs/policies.md).
#pragma once

#include "policies/team_placement.h"

namespace bosk::sched {
struct Seats;
struct Thread;
struct Worker;
}  // namespace bosk::sched

namespace bosk::omp {

class Resettlement;
struct Team;

/// What a nested team keeps while teams are placed, written by its opener. Recycled with the team, so
/// that a region that is opened again in the same way finds its answer here.
struct TeamHome {
  policies::TeamPlacement placement;  ///< homes of its members
  policies::TeamPlacement outer;      ///< the opener's team's, that it was made from, unless a list
  uint64_t serial = 0;                ///< tells answers apart
  // What it was made from besides, 0 for nothing: the opener's team's serial if that has a list, and the
  // stamps of the loads of the opener's team, if that is the outermost, and of its own.
  uint64_t outer_serial = 0;
  uint64_t outer_loads = 0;
  uint64_t own_loads = 0;
  const sched::Seats* outer_seats = nullptr;  ///< of the pool
  uint32_t depth = 0;                         ///< policies::TeamShape
  uint32_t outermost_size = 0;  ///< of the opener's team if that is the outermost, else 0
  uint32_t outer_index = 0;     ///< the opener's number in its team
  uint32_t opener_home = 0;     ///< where that member is at home
  uint32_t opener_pu = topology::kNone;
  uint32_t seat = topology::kNone;  ///< of its relation: a domain that it does not leave
  /// Of its place, where others are kept off because of its memory, which could come along; null: not so.
  Resettlement* resettlement = nullptr;
};

/// Gives a team that is about to be published its home and its reach, or clears pool->placing. Only
/// for pools where that is set. Preemption is off before and after, and may be on in between. Returns
/// the worker that the opener is on now.
sched::Worker* place_nested_team(sched::Thread* me, Team* team);
/// The same for a level-1 team that has more members than workers: it may run anywhere.
void place_outer_team(Team* team);

}  // namespace bosk::omp
