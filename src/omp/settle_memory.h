// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Under the policy memory: what members work on comes to where they are, where that pays (docs/memory.md).
#pragma once

#include <stdint.h>

namespace bosk::sched {
struct Pool;
struct Thread;
}  // namespace bosk::sched

namespace bosk::omp {

struct TeamLoads;
struct TeamMemory;

/// Does memory go to the members of teams here? Constant once teams are placed.
bool settles_memory();

/// `size` members are at home where `memory` says (note_homes()). Moves or marks what is attached to them, as
/// BOSK_MEMORY_MOVES says or by costs. From then on the pool's workers keep to their nodes. With preemption on.
void settle_memory(sched::Pool* pool, TeamMemory* memory, uint32_t size);

/// Most of a nested team of `size` that is at home on `home_node` runs on `node`, its opener on `opener_node`. Brings what is attached to them
/// there, where that pays. True: something comes, or most of it is there: then they are at home there from now on. With preemption on.
bool bring_along(sched::Pool* pool, TeamMemory* memory, uint32_t size, uint32_t opener_node,
                 uint32_t home_node, uint32_t node);

/// A level-1 region of `size` is about to open: `region`, its function. If what is attached to its members, or where these have their seats, has changed since the
/// last one: members without OpenMP places go to it by exchanging their seats, and what is far still comes to them, as BOSK_MEMORY_MOVES
/// allows. look_after_marks() is done as well. With preemption on.
void ready_memory(sched::Thread* me, void (*region)(void*), const TeamLoads* loads, uint32_t size,
                  uint32_t proc_bind_clause);

/// What the caller's team works on is not what it was: decided now, as ready_memory() does, not only when the next region opens (2009
/// §3.3). `when_all`: when as many have called as there are members. 1: something moves; 0: nothing, not everybody's turn
/// yet, or another member decides. BOSK_ESTATE: outside of regions; BOSK_ENOMEM. With preemption on.
int redecide_memory(sched::Thread* me, bool when_all);

}  // namespace bosk::omp
