// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where nested teams are at home on the machine: asks the policies (docs/policies.md).
#pragma once

#include "policies/team_placement.h"

namespace bosk::sched {
struct Thread;
struct Worker;
}  // namespace bosk::sched

namespace bosk::omp {

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
  uint32_t outermost_size = 0;  ///< of the opener's team if that is the outermost, else 0
  uint32_t outer_index = 0;     ///< the opener's number in its team
  uint32_t opener_home = 0;     ///< where that member is at home
  uint32_t opener_pu = topology::kNone;
};

/// Finds out now whether teams are placed, if BOSK_POLICY is given, so that what is wrong with it is
/// said at once. Otherwise the first nested team finds out. Preemption must be on.
void prepare_placing();

/// In the child of a fork: policies that are plug-ins may have threads and locks.
void placing_forget_after_fork();

/// What places teams on topology::process_machine().
struct PlacedBy {
  const char* policy = nullptr;  ///< as BOSK_POLICY has it; null: nothing, or nobody knows yet
  const topology::Level* level = nullptr;  ///< the innermost one that is named; null: none is
  uint64_t asked = 0;  ///< how many teams were no hot ones, so that a policy was asked
};
PlacedBy placed_by();
/// Some policy that places teams goes by their memory. False also while nobody knows yet.
bool placed_by_memory();

/// For those who look at what is near first: the machine, null if all is equally near, or if nobody knows yet. The second one finds
/// out, which may take milliseconds; preemption must be on.
struct ByDistance {
  bool known = false;
  const topology::Machine* machine = nullptr;
};
ByDistance known_distances();
const topology::Machine* find_distances();

/// Gives a team that is about to be published its home and its reach, or clears pool->placing. Only
/// for pools where that is set. Preemption is off before and after, and may be on in between. Returns
/// the worker that the opener is on now.
sched::Worker* place_nested_team(sched::Thread* me, Team* team);
/// The same for a level-1 team that has more members than workers: it may run anywhere.
void place_outer_team(Team* team);

}  // namespace bosk::omp
