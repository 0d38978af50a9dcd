// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// steal: bubbles stay where they are woken; PUs that are idle come and take them (2005, 2007).
//
//     node        [ ]                [ ]            A was woken by PU 0 and opened there
//     pu      0: a1 B C   1: -     2: -   3: -      1 is idle: takes B, whole, from its neighbour;
//     pu      0: a1 C     1: B     2: -   3: -      2 finds nothing near, and takes C from far away
//
// Algorithm. A bubble that is found goes down to the finder's PU, and opens there: what is in it is
// that PU's own, one after another, and bubbles in it stay whole until their turn comes. An idle PU
// looks through the queues of others, nearest first and at each distance the highest domains first,
// and takes one bubble with enough work, whole; if there is none on the machine, the nearest thread. So
// a tree of bubbles is cut at its top, work moves in large parts, and rarely.
//
// Argument: how much work is enough (`steal:8`, default 2): the load that was told for a bubble or
// else the number of its direct members.
//
// A team is at home where its opener runs; other workers take its ghosts, the nearest first.
//
// Cost: O(1) per bubble, O(its members) to burst. A steal: one load for each domain nearer than the
// victim. No memory.
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kStealPolicy;

}  // namespace bosk::policies
