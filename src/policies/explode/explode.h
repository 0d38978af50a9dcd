// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// explode: every bubble bursts at once and the threads are spread over the machine.
//
//     machine      A( a1 a2 B( b1 b2 ) ) c      all bubbles open, whatever their size
//     node 0 | 1   a1 a2 c | b1 b2              threads by load, heaviest first, to the emptiest
//     core         and so on within each node
//
// Algorithm. spread (spread/spread.h) with an explode factor of nothing: no bubble is ever small
// enough to stay whole. Threads and runs of ghosts are dealt out by load at every level, those of
// equal load in the order of the tree. Balance is as good as the loads are known, affinity is what
// the order gives. Bubbles that are kept by their relation stay whole (relations.h).
//
// A team is at home on the whole machine whoever opened it: its members even over all PUs.
//
// Cost: that of spread, O(L · n log n + D · log k) for n threads and runs of ghosts; a team O(1).
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kExplodePolicy;

}  // namespace bosk::policies
