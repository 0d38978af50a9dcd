// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory follows members that move: marks what is attached to them for next-touch (docs/memory.md).
#pragma once

#include "omp/team_memory.h"
#include "policies/team_placement.h"
#include "topology/machine.h"

namespace bosk::omp {

/// What is attached to the addressee goes to whoever touches it next. How many areas were marked, or a code of
/// bosk/error.h: BOSK_ENOTSUP if none could be that should.
int mark_memory(sched::Thread* me, Addressee whose);

/// The team's members are at home there from now on, the first of them on `first_node` (kUnknownHome: as the others). True: one that has memory was elsewhere before, so follow_moved()
/// is to be called when preemption is on. Any state of preemption; O(members that ever had memory).
bool note_homes(const topology::Machine& machine, TeamMemory* memory,
                const policies::TeamPlacement& placement, uint32_t first_node = kUnknownHome);
/// Marks the memory of those that moved, where that pays: by the costs of the machine, what is saved by reading and
/// writing it near is more than marking, faulting and moving take. With preemption on.
void follow_moved(TeamMemory* memory);

/// Those that moved are looked after by somebody else.
void forget_moves(TeamMemory* memory);

/// A level-1 region begins. A handler that the program has installed over bosk's since the last mark goes behind it. With
/// BOSK_NEXT_TOUCH=regions, all areas go to whoever touches them first in it (Goglin 2009, section 2.3), but those that
/// were put somewhere on purpose. With preemption on.
void look_after_marks();
/// Somebody has marked memory: look_after_marks() is to be called from now on.
void expect_marks();

}  // namespace bosk::omp
