// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// spread: distribute entities over the domains of each level, greedily by load (2007 §3.3).
//
//     machine      A(6) B(3) c(1)              fair share of a node: 10/2 = 5
//     node 0 | 1   B a1 a2 | a3 a4 a5 a6 c     A is larger: it explodes; B is not: it stays whole
//     core         and so on within each node
//
// Algorithm, for some entities on one domain with k children:
//   1. Explode: a bubble whose load is more than `explode factor` × the fair share of the largest
//      child is replaced by its contents, and those are looked at in the same way. A bubble with
//      one thread in all never explodes: there is nothing to gain. The fair share is of all the load
//      that is there: what was dealt out earlier counts as well as what is dealt out now. So a
//      bubble that a thread makes on a full machine stays whole.
//   2. If one thread (or bubble of one) is all there is, it stays here: any PU below may run it.
//   3. Deal out: by decreasing load, each to the child that has the least load per PU so far (load
//      that is booked there already counts). Things of equal load are dealt in one go, each child
//      getting as many as that rule gives it but *neighbours in the tree of bubbles*, so that
//      siblings stay together wherever balance does not mind. Ghosts of a bubble are such a run of
//      equal things, and are cut into index ranges by arithmetic, not one by one.
//      A bubble that is the only thing to go down goes to the side of the worker that found it (which
//      is often the one whose thread made it), if that side has no more than its own share.
//   4. The same within each child, down to the PUs or to the next policy's level.
//
// Balance: at every level, load per PU of the fullest and of the emptiest child differ by at most
// the load of the largest thing that was dealt, divided by the PUs of the smallest child (each goes
// to the emptiest one), if nothing was booked before. Things whole by choice are at most `explode
// factor` × the fair share.
//
// Loads: what was told, else 1 per thread and ghost; of a bubble what was told for it, else the sum
// of its contents. If a bubble was told a load, its contents share it in proportion to theirs.
//
// Argument: the explode factor in percent (`spread:50`, default 100, 1 … 100000). Small: bubbles
// break early, good balance; large: they stay whole, good affinity.
//
// A team of members of equal load has the same rules in closed form (TeamPlacement::set_even),
// below its opener's home; with loads that differ each member is dealt as above.
//
// A fresh bubble of a few threads that goes down whole is not even dealt out (way_down.cpp): O(L).
//
// Cost: O(L · n log n + D · log k) for n entities and runs of ghosts, L levels and D domains that
// get something; a team: O(1), with loads O(L · N log N). Never O(number of ghosts). Deterministic.
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kSpreadPolicy;

}  // namespace bosk::policies
