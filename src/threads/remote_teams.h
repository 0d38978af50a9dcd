// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of remote_accesses.h that looks at OpenMP teams: those that are open and have memory, under the policy memory.
//
//     omp/open_teams.h: who owns what, by whose workers ─▶ where those are (the kernel, their seats) ─▶ where sampled pages of theirs
//       are ─▶ RemoteWatch ─▶ decide_about_team(): memory comes, or is marked; the members stay
//
// Who owns what: the service thread, all of it.
#pragma once

#include "threads/remote_accesses.h"

namespace bosk::threads {

/// There may be something to look at, and somebody who says where it is.
bool teams_are_watched();
/// An interval is over. False: there is nothing to be had here, and never will be.
bool begin_with_teams();
void look_at_teams(policies::RemoteWatch* watch, LookedAt* looked);
void release_looked_at_teams();
void forget_looked_at_teams();

}  // namespace bosk::threads
