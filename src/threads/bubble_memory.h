// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles as users of memory: the adapter (locality/service.h) that knows who is in them, and what becomes of their threads.
//
// Threads go first: a bubble whose threads are to move is closed, and looked at again when it has been placed; then only
// memory moves. Nothing is moved with a lock of the tree held: who is where is written down under those (bubble_users.h),
// the books are asked and pages moved after that. Whoever has moved meanwhile has memory on the wrong node, until somebody
// looks again.
#pragma once

#include "bosk/bosk.h"
#include "policies/memory/requests.h"

namespace bosk::sched {
struct Thread;
}

namespace bosk::threads {

struct Home;

/// Something is attached: from now on somebody takes the engine's requests. `me`, with preemption on. If there is no thread to be
/// had, one line says so, and threads go to their memory.
void ensure_bubbles_are_served(sched::Thread* me, Home* h);

/// Looks at the outermost open bubble around this one. 1: something moves, or will; 0: nothing; BOSK_ESTALE. `me`: the
/// caller, with preemption on; null: a kernel thread that plays no worker.
int decide_about_memory(sched::Thread* me, bosk_bubble_t bubble, policies::MemoryTrigger trigger);

}  // namespace bosk::threads
