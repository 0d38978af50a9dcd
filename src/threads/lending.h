// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that closed bubbles lend to those who wait for them.
//
// A bubble says who belongs together, for when somebody else comes for them. As long as nobody does, whoever joins
// what it holds need not open it: the thread runs there and then, and the bubble lies closed where it is, with the rest
// and with all that is nested in it meanwhile, until another worker finds it and the policy decides about what is
// left. So a tree of bubbles that its own worker walks through is never queued, searched and opened.
//
// Only where it makes no difference who comes upon the bubble: under policies that say so (PolicyOps::lends), within
// one last-level cache of a machine with one memory node, and as long as the program has asked nothing of any bubble (a priority, a level, a relation,
// a policy, a time slice).
#pragma once

#include "threads/home.h"
#include "threads/records.h"

namespace bosk::threads {

/// By whoever asks something of a bubble, before. From here on none lends.
void note_wish();

/// By a thread that is about to join `thread`, which is in a bubble and whose guard is held. The carrier that it
/// shall be started on (sched::wait_for_entity()) after the guard was let go; null: it is not to be had.
/// Preemption is off.
sched::Thread* borrow(Home* h, const sched::Thread* me, ThreadRecord& thread);

/// Calls an idle worker to the outermost bubble around this one that can be found. O(depth).
void announce_outermost(Home* h, const BubbleRecord& bubble);

/// Something was put into the bubble and is held there. Who goes idle looks at the queues, where the outermost is; this
/// is for those that it is out of reach of.
inline void announce_held(Home* h, const BubbleRecord& bubble) {
  // relaxed: who is idle only now has looked, or will.
  if (BOSK_UNLIKELY(h->pool->idle_count.load(std::memory_order_relaxed) != 0))
    announce_outermost(h, bubble);
}

}  // namespace bosk::threads
