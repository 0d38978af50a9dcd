// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocking on a 32-bit word: what futex(2) is to kernel threads, for user-level threads.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// Blocks the calling thread while `word == expected`. Returns when it was woken or when the value
/// differed at the time of the call; like futex, it may return spuriously, so callers loop. While
/// the thread is blocked its worker runs other threads; with nothing else to run it spins for a
/// bounded time, then parks. Works for every caller: user-level threads, initial threads, pthreads
/// that never opened a region. Not a task scheduling point by itself.
void wait_on(const std::atomic<uint32_t>& word, uint32_t expected);

enum class WaitEnd : uint8_t {
  kWoken,     ///< as wait_on() returns: perhaps for no reason
  kTimedOut,  ///< the deadline has passed, and no wake-up was spent on this thread
  kNoClock,   ///< the kernel refused what waits with deadlines need: it did not wait
};

/// Lets the other threads of the worker run first, if it has any. What waits with deadlines that have
/// passed already comes here, so that a loop of such waits holds no worker, with or without ticks.
void give_way();

/// The same as wait_on(), until `deadline` at the latest (clock.h; kForever: never). The clock is a kernel thread that
/// is made at the first such wait; while the calling thread waits its worker runs others.
WaitEnd wait_on_until(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t deadline);

/// Wakes at most `count` threads blocked on `word` (UINT32_MAX: all). The caller has changed the word
/// before, with any memory order: the full fence that makes the pair safe is inside. Cost with no
/// waiter: one fence and one load. The word need not be alive any more when this is called (only
/// its address is used), but a reuse of the address may see a spurious wake-up.
void wake(const std::atomic<uint32_t>& word, uint32_t count);

/// As wake(), for callers whose change of the word was a sequentially consistent read-modify-write
/// (on x86-64 and with LSE atomics a full fence): no second fence is paid.
void wake_after_rmw(const std::atomic<uint32_t>& word, uint32_t count);

/// wake() of all for service threads, which belong to no pool.
void wake_from_service(const std::atomic<uint32_t>& word);

struct Thread;
struct TimedWait;
/// By the clock, with its lock held: takes the thread that waits out of its bucket and links it to `*due`, or
/// marks the wait as expired.
void expire_wait(TimedWait* wait, Thread** due);
/// By the clock, without it.
void make_expired_ready(Thread* due);

}  // namespace bosk::sched
