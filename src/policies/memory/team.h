// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members of OpenMP teams drawn to their memory.
//
// Where the team may be on several nodes its members are drawn one by one, as threads of a bubble are. Where its opener is at
// home on one node, the whole team goes to another one if three quarters of all that it and its members use lie there.
#pragma once

#include "policies/memory/draw.h"
#include "policies/team_placement.h"

namespace bosk::policies::draw {

/// True: the answer is there. False: place it without regard to memory, by the shape, which may have another home now.
bool place_team(const Parameters& parameters, TeamShape* shape, Scratch* scratch,
                TeamPlacement* answer);

}  // namespace bosk::policies::draw
