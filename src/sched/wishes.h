// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where `bosk run --learn` wishes the members of teams to be, by what it has seen of who shares with whom: they go there by exchanging their seats
// (homes.h), and those who help them go along.
//
// Who owns what. A service thread maps the file of wishes (observed/hand_over.h), sleeps on its word, and does all of it; others only ring. The
// observer may write anything at any time: what is read is a number each, and what it means is checked here. The file is mapped until the
// service is stopped, by who stops it, so that who rings has it.
#pragma once

#include <stdint.h>

namespace bosk::topology {
struct Machine;
}

namespace bosk::sched {

struct Thread;

/// Somebody may wish something: sees to it that he is heard, unless nobody is there. `me` has a pool with seats, and preemption on. Two loads where that is known.
void serve_wishes(const Thread* me);

void stop_serving_wishes();
void wishes_forget_after_fork();

// ---- Apart from where it comes from, for tests.

/// The parts of the machine for members that are wished on CPUs (the system's numbers) and have the parts `part_of` now, a permutation: where the wishes are no
/// permutation of parts, in their order, so that each is as near as can be. False: a CPU that the machine has not. O(team · log team).
bool parts_by_wish(const topology::Machine& machine, uint32_t team, const uint32_t* cpus,
                   uint32_t* part_of);

}  // namespace bosk::sched
