// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The clock: ends waits whose deadline has passed. A kernel thread that sleeps until the earliest one.
#pragma once

#include <stdint.h>
#include <time.h>

#include "sched/deadline_queue.h"

namespace bosk::sched {

struct Thread;

/// A deadline that never comes.
constexpr uint64_t kForever = UINT64_MAX;

/// Nanoseconds of CLOCK_MONOTONIC.
inline uint64_t clock_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

/// From now to the deadline, for the kernel. False: it has passed.
bool time_left(uint64_t deadline, timespec* left);

/// A wait of address_wait.h that has a deadline. On the stack of whoever waits.
struct TimedWait : Deadline {
  Thread* thread = nullptr;
  bool expired = false;    ///< guarded by the bucket's lock: it must not begin to wait any more
  bool timed_out = false;  ///< the clock ended it; written before the thread is made ready
};

/// Sees to it that the clock goes: 0, or the errno value of what was refused. Preemption is on.
int ensure_clock(const Thread* me);
/// It goes until the calling thread has left the scheduler: to be asked after enter() and pause_is_on().
bool clock_goes();

/// The clock will end the wait, or mark it as expired, at its deadline. Preemption is off.
void set_alarm(TimedWait* wait);
/// The clock does not touch it any more.
void cancel_alarm(TimedWait* wait);

/// Nobody waits with a deadline, or can begin to (pause.h).
void stop_clock();
void clock_forget_after_fork();

}  // namespace bosk::sched
