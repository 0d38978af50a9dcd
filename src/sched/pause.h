// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pauses: every thread that the scheduler has made ends, or sleeps, until somebody opens a region.
#pragma once

#include <atomic>

#include "base/atomics_policy.h"

namespace bosk::sched {

struct Thread;

/// A pause changes workers that others play (worker 0 of every pool). So nobody may be in the
/// scheduler meanwhile, and it takes two sides to be sure of it, without a fence on theirs:
///
///   Initial thread, outside of regions:      Pause:
///
///     say so: preempt_off, or the bubble       pauses is odd, Pool::usable = 0
///     light barrier                            heavy barrier
///     a pause is on? out again, wait           somebody said so? give up
///
/// Of the two loads one sees the other side's store. Opening a region of several looks at Pool::usable,
/// as it must anyway; ticks and waits ask pause_is_on(). Whoever makes workers says so by Pool::asking, also outside of
/// regions, and is the only one who raises Pool::usable: a pause that finds it raised again gives up.
///
/// `pauses` counts beginnings and ends. So who waits for the end of one does not wait for the next one, too: a thread that pauses
/// again and again kept others from opening a region.
inline constinit std::atomic<uint32_t> pauses{0};

inline bool pause_is_on() {
  base::StdAtomics::light_barrier();
  // acquire: what the last pause did to the worker comes before what follows.
  return pauses.load(std::memory_order_acquire) % 2 != 0;
}
/// If one is on, until it is over; another one may be on then.
void wait_out_pause();

/// Called outside of regions, by a thread that may be unknown (null). `end_threads`: all of them end, with
/// what they have; else idle workers sleep at once. False, and nothing has happened: another thread has a
/// region open or waits in the scheduler.
bool pause_all(Thread* me, bool end_threads);

/// After an initial thread has ended. If none is left, all threads that the scheduler has made end: were
/// main to leave by pthread_exit, the process would live on for them, deaf to signals.
void end_all_if_unused();

void pause_forget_after_fork();

}  // namespace bosk::sched
