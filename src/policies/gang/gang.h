// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gang: the threads of a bubble run at the same time or not at all (2005 §3.1 and figure 1).
//
//     time      PU 0 1 2 3 4 5 6 7
//      |           A A A A B B . .      A and B fit side by side; C(4) waits, D(2) fills in:
//      |           A A A A B B D D      no PU idles while a gang could run
//      v  slice    C C C C B B D D      A's slice is over and C waits: A goes to the end
//
// Algorithm. A gang is a bubble that holds threads but no bubbles, or whose relation is gang: then all
// that is in it. Other bubbles open where they are. Each PU belongs to one gang at most.
//   - A gang that is found starts if its domain has as many PUs that belong to nobody as it has
//     threads: each gets one of its own, those of the smallest domain that has enough, of equals the
//     one with fewest to spare, or where it was last time. More threads than the domain has PUs:
//     it starts when all are free, and they share them.
//   - Otherwise it waits beside the queues. Whenever a PU of the domain has nothing to do, those that
//     wait are looked through by priority, then in the order in which they came, and the first that
//     fits starts. So smaller ones fill in what larger ones cannot use. Only who was passed over
//     kMostPassed times gets what becomes free kept for it until it fits (or else would starve).
//   - A PU is free again when its thread has ended, or when it asks for work three times: its thread is
//     blocked.
//   - Time slices: when its slice is over and others of its priority or a higher one wait, a gang is
//     regenerated: its threads are preempted and go back into it, and it queues behind those that wait.
//
// Threads outside of gangs are queued where they are, and fill what is left. Ghosts of a bubble are
// served from the PUs that it got, but a PU does not know when the last one has ended: it notices as
// for blocked threads.
//
// Argument: the length of a slice in ticks (`gang:5`, default 1) of each PU that the gang has.
//
// A team is together on the smallest domain around its opener that has a PU for each member, and no
// other worker takes them.
//
// Cost: finding, ending or slicing O(gangs that run); starting O(threads + PUs of its domain); a PU
// without work one load, and where gangs wait O(threads of those). Memory: 16 bytes a PU, 4 a domain.
// The same state and algorithm serve bubbles of relation gang under every other policy.
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kGangPolicy;

}  // namespace bosk::policies
