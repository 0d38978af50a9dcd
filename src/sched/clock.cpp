// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The clock.
//
// The queue of deadlines is guarded by a spin lock. A wait is in it from before its thread leaves its stack
// until it has been taken out: by the clock when its time has come, else by the thread when it is back.
// The clock takes the bucket's lock inside of the queue's: after cancel_alarm() it does not know the wait any
// more, whatever it has found.
//
//   thread:  queue, sleep in the bucket       clock:  unqueue; under the bucket's lock either take the
//            … back: unqueue if still queued          thread out of it, or mark the wait as expired
//
// A thread that is marked has either not entered the bucket yet (then it does not, and goes on as timed out) or
// been woken by somebody else (then the mark means nothing).
#include "sched/clock.h"

#include <limits.h>
#include <sys/prctl.h>

#include <new>

#include "base/spinlock.h"
#include "base/syscalls.h"
#include "sched/address_wait.h"
#include "sched/service_thread.h"

namespace bosk::sched {
namespace {

/// Waits that the clock ends before it lets others have the queue.
constexpr uint32_t kBatch = 64;

struct Clock {
  base::SpinLock lock;  ///< guards queue
  DeadlineQueue queue;
  /// Futex, grows with every new earliest deadline. release, so that who sees it sees the queue, which
  /// its lock would do anyway; the kernel compares it under its own lock with what was read before the look.
  std::atomic<uint32_t> news{0};
  ServiceThread thread;
};
constinit Clock the_clock;

void tell_clock() {
  the_clock.news.fetch_add(1, std::memory_order_release);
  base::futex_wake(&the_clock.news, 1);
}

/// Ends what is due. Returns the next deadline.
uint64_t end_due_waits() {
  for (;;) {
    const uint64_t now = clock_now();
    Thread* due = nullptr;
    uint64_t next = kForever;
    bool more = false;
    the_clock.lock.lock();
    for (uint32_t ended = 0;; ++ended) {
      Deadline* first = the_clock.queue.first();
      if (first == nullptr) break;
      next = first->at;
      if (next > now) break;
      if (ended == kBatch) {
        more = true;
        break;
      }
      the_clock.queue.remove(first);
      next = kForever;
      expire_wait(static_cast<TimedWait*>(first), &due);
    }
    the_clock.lock.unlock();
    make_expired_ready(due);
    if (!more) return next;
  }
}

void run_clock(ServiceThread& service) {
  // This kernel thread's sleeps are others' deadlines: not 50 us late for the sake of fewer wake-ups.
  base::raw_syscall(SYS_prctl, PR_SET_TIMERSLACK, 1);
  while (!service.is_stopping()) {
    const uint32_t seen = the_clock.news.load(std::memory_order_acquire);
    const uint64_t next = end_due_waits();
    timespec left;
    if (next != kForever && !time_left(next, &left)) continue;
    if (service.is_stopping()) return;
    base::futex_wait(&the_clock.news, seen, next != kForever ? &left : nullptr);
  }
}

}  // namespace

bool time_left(uint64_t deadline, timespec* left) {
  const uint64_t now = clock_now();
  if (now >= deadline) return false;
  const uint64_t ns = deadline - now;
  // The kernel refuses what it cannot represent; nobody waits for a hundred years.
  constexpr uint64_t kLongest = 100ull * 365 * 24 * 3600;
  const uint64_t seconds = ns / 1'000'000'000u;
  left->tv_sec = static_cast<time_t>(seconds < kLongest ? seconds : kLongest);
  left->tv_nsec = static_cast<long>(ns % 1'000'000'000u);
  return true;
}

int ensure_clock(const Thread* me) { return the_clock.thread.ensure(me, nullptr, run_clock); }
bool clock_goes() { return the_clock.thread.runs(); }

void set_alarm(TimedWait* wait) {
  the_clock.lock.lock();
  const bool earliest = the_clock.queue.insert(wait);
  the_clock.lock.unlock();
  if (earliest) tell_clock();
}

void cancel_alarm(TimedWait* wait) {
  the_clock.lock.lock();
  if (wait->queued) the_clock.queue.remove(wait);
  the_clock.lock.unlock();
}

void stop_clock() { the_clock.thread.stop(tell_clock); }

void clock_forget_after_fork() {
  the_clock.thread.forget_after_fork();
  new (&the_clock.lock) base::SpinLock;
  the_clock.queue = DeadlineQueue{};
}

}  // namespace bosk::sched
