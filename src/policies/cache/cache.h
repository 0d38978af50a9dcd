// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache: teammates as close together as possible, and where they were before (2009 §3.3).
//
//     machine      A( a1 a2 a3 a4 ) B( b1 b2 ) C( c1 c2 )
//     node 0 | 1   A                | B C           A has a PU for each thread in node 0
//     cache        a1 a2 | a3 a4    | b1 b2 | c1 c2 pairs stay whole: cuts go between bubbles
//     idle         a PU of node 1 takes from its own cache first, then its node, then node 0
//
// Algorithm, for some entities on one domain, in the order of the tree of bubbles:
//   1. If one child has a PU for each of their threads, all of them go there: to the child where most
//      of them were last time if its load is not larger than the emptiest one's by more than what they
//      bring along, else to the emptiest; of equals the one around the PU that asks.
//   2. Otherwise to as few children as have PUs enough (all, if there are more threads than PUs). The
//      entities are laid out in a line and cut into one part for each of these children, as long as
//      its share of the load by PUs, what is booked there counted in. A cut that would go through a
//      bubble moves to its edge if that is not farther away than the *slack*; else the bubble opens,
//      and the cut goes through its contents in the same way.
//   3. Parts that are as good for one child as for another go where most of their threads were last
//      time.
//   4. The same within each child, down to the PUs or to the next policy's level.
// So what is together in the tree is together on the machine at every level, and the same tree with
// the same loads goes to the same places again. A PU that runs dry takes from the nearest queues, a
// bubble with two threads or more whole, then a thread.
//
// Balance: parts differ from the shares by the slack or by one thread, whichever is more.
//
// Argument: the slack in percent of a child's share (`cache:10`, default 25, 0 … 100).
//
// A team: its members even over the smallest domain around the opener, within the opener's home, that
// has a PU for each.
//
// Cost: O(L · (n + k log k)) for n entities and runs of ghosts, L levels and k children of a domain;
// k² more on domains where threads were before. A team: O(levels), with loads O(L · N). A steal: one
// load for each domain nearer than the victim. Remembered: Figures::last_domain, nothing else.
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kCachePolicy;

}  // namespace bosk::policies
