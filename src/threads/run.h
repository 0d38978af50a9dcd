// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The life of an explicit thread on a carrier: from its first instruction to what is told at its end.
#pragma once

#include "sched/scheduler.h"
#include "threads/records.h"

namespace bosk::threads {

/// EntitySource::run.
void run(sched::Thread* me, sched::ExplicitThread* thread);

/// The thread that the calling code belongs to; null: to none.
inline ThreadRecord* running(const sched::Thread* me) {
  return me != nullptr && me->is_entity() ? static_cast<ThreadRecord*>(me->entity) : nullptr;
}

/// Ends the calling thread, outside of parallel regions. False: it is inside of one.
bool exit_running(sched::Thread* me, void* result);

/// Adds the time since it was switched to, by whoever runs it.
void count_time(ThreadRecord& thread);

/// The thread, in the caller's hands and with its guard held, belongs to its bubble no longer; what the
/// bubble counts stays for note_gone(). Returns the bubble.
BubbleRecord* leave_bubble(ThreadRecord& thread);
/// A thread, or a bubble with live threads, is in `bubble` no longer, or has ended. `is_thread`: of the
/// barrier's. No guard is held.
void note_gone(BubbleRecord* bubble, bool is_thread);
/// A thread, or a bubble with live threads, comes into it. The guard of `bubble` is held.
void note_come(BubbleRecord& bubble, bool is_thread);

}  // namespace bosk::threads
