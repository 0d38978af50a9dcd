// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mates: further contexts of one member, under the member's own identity.
//
// A task may spin until a later task has run, and every member of the team may be busy with such tasks.
// Then nobody is free to start the later one, unless a member gets a second stack: a mate, which runs
// queued tasks as that member. A member and its mates share one identity, so only one of them may run
// at a time: they form a ring, of which exactly one is with the scheduler (running or queued); the
// others are known to nobody else and are reached by turning the ring.
#pragma once

#include "sched/scheduler.h"

namespace bosk::sched {

inline bool has_mates(const Thread* me) { return me->next_mate != nullptr; }
/// Others of the ring run queued work of `bubble`. Preemption is off.
bool has_mates_of_team(const Thread* me, const Bubble* bubble);

/// Lets the next of the ring run; returns when it is the caller's turn again. Preemption is off.
void turn_ring(Thread* me);

/// The same for a context that waits, perhaps for what its worker would run if nobody waited here.
inline void wait_a_turn(Thread* me) {
  let_worker_go_on(me);
  if (has_mates(me)) turn_ring(me);
}

/// In the preemption handler: may the thread that was interrupted at `pc` get a mate? A mate runs under
/// the same identity, so the code that was interrupted must not be in the middle of anything that keeps
/// state per thread (malloc, stdio, the unwinder). True only when ticks in a row found it at the same
/// few instructions, and these belong to the object that the region's code is in: a loop that spins.
/// What stays is a comparison function that spins inside qsort and its like.
bool spins_in_program(Worker* w, const Thread* me, uintptr_t pc);

/// In the preemption handler: is `pc` in the object that the region's code is in? The ring may be turned
/// there, even if it does not spin: mates are rare, and what they share is kept by other objects.
bool is_in_program(const Thread* me, uintptr_t pc);

/// In the preemption handler: gives the member a mate that runs queued work. Null: none can be had now.
Thread* make_mate(Worker* w, Thread* me);

/// The life of a mate, on a carrier that was switched to for it.
void run_as_mate(Thread* me);

}  // namespace bosk::sched
