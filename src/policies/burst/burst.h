// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// burst: bubbles go down to a given level and burst there; then self-scheduling (2005 §3.3.1).
//
//     machine   [ A B C ]              a worker of node 1 finds A: A goes down to node 1's queue
//     node      [     ]   [ A ]        the same worker finds it there and bursts it
//     core      ( )( )     ( )( )      the PUs of node 1 take a1, a2, a3 from the node's queue
//
// Algorithm. A bubble that is found above the bursting level goes down, in one step, to the domain
// of that level which lies on the finder's way to its PU. At that level, or below it, it bursts on
// the queue where it is; bubbles that were in it are found there and burst in turn. Ghosts are
// served from there. So entities of one bubble stay within one domain of the bursting level, and
// which domain that is, the first idle worker decides: load is balanced by who is idle, not by
// anything known in advance.
//
// Argument: the bursting level (`burst:core`). Without one it is the level that the policy acts at
// (`burst@l3`); with neither it is the NUMA node: the largest domain in which memory is the same
// for all. Deep levels favour affinity, high ones keep processors busy.
//
// A team is a bubble whose opener already runs: its members are at home on the smallest domain
// around the opener that has a PU for each, but not below the bursting level and not outside its
// opener's home.
//
// Cost: O(1) for a bubble that goes down or is asked about, O(what it holds) for one that bursts,
// O(levels) for a team. No memory.
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kBurstPolicy;

}  // namespace bosk::policies
