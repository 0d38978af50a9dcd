// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who sits where, by memory: members that cannot leave their kernel threads go to what they work on by exchanging their seats
// (docs/memory.md). For flat teams, and for outer members with all that runs under them.
//
//     4 nodes, members 0 to 3 in parts 0 to 3, each works on what is on the next node: parts 1, 2, 3, 0
//
// The parts are those of sched/seats.h: of P PUs part k of n is k·P/n … (k+1)·P/n − 1, and whoever has it also has the helpers that
// sit there. What is counted for a member is what lies on the nodes of its part.
//
// Algorithm: whoever would have most near chooses first; who finds all full keeps its part, or takes what is left. Then pairs exchange
// as long as that brings more. Equal parts, those of one node, are not exchanged.
//
// A pure function. Cost, in n members and m nodes: O(n·m log(n·m) + rounds · n²), with at most kMostRounds rounds; 1,024 members
// on 64 nodes: some milliseconds, each time that what they work on has changed.
#pragma once

#include "policies/team_placement.h"

namespace bosk::policies {

/// Less than one part in so many of all their bytes is not worth an exchange, after which all caches are cold.
constexpr uint64_t kLeastShareOfSeats = 20;

/// `members`, no more than PUs; `part_of` has each one's part. Changes it if so much more of what they work on is near then, at least
/// `least_bytes`. False: nothing was changed; it is good as it is, or there is no memory.
bool order_seats(const topology::Machine& machine, const TeamFootprints& footprints,
                 uint32_t members, uint64_t least_bytes, uint32_t* part_of);

}  // namespace bosk::policies
