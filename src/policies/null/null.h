// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// null: no policy. Everything on one queue, and whoever is idle takes what is first.
//
//     machine   [ A B ]  ->  [ a1 a2 a3 b1 b2 ]     any PU takes the next one
//     core      ( ) ( ) ( ) ( )
//
// Algorithm. A bubble that is found bursts on the queue where it is, which is the machine's for what
// is woken there; nothing ever goes down. Balance is perfect, affinity is chance: this is what the
// other policies are measured against. Relations are obeyed as everywhere (relations.h).
//
// A team is at home on the whole machine, all members together, and idle workers look for its ghosts and
// threads by number, not by distance.
//
// Cost: O(1) per bubble and its members' bursting; one queue for all PUs, which contend for its lock.
// No memory, no state.
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kNullPolicy;

}  // namespace bosk::policies
