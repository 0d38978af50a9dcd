// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocking on a word: a hash table of waiting threads, like the kernel's futex table.
//
// No lost wake-up: a waiter first counts itself in its bucket (seq_cst), then looks at the word; a
// waker first changes the word, then (full fence) looks at the count. One of the two sees the other.
// A waker that sees the count takes the bucket's lock; the waiter is put into the bucket, after it has
// left its stack, under the same lock and only if the word still has the expected value.
#include "sched/address_wait.h"

#include <errno.h>

#include <new>

#include "sched/clock.h"
#include "sched/doing.h"
#include "sched/kernel_threads.h"
#include "sched/pause.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

constexpr uint32_t kBuckets = 512;

struct alignas(base::kCacheLine) Bucket {
  base::SpinLock lock;
  std::atomic<uint32_t> waiters{0};
  Thread* first = nullptr;
  Thread** last = nullptr;
};
constinit Bucket buckets[kBuckets];

Bucket& bucket_of(const void* address) {
  const uint64_t key = reinterpret_cast<uint64_t>(address) >> 2;
  return buckets[(key * 0x9e3779b97f4a7c15u) >> 55];
}

void append(Bucket& bucket, Thread* thread) {
  thread->link = nullptr;
  if (bucket.first == nullptr)
    bucket.first = thread;
  else
    *bucket.last = thread;
  bucket.last = &thread->link;
}

/// The thread that `*at` in the bucket's list links to.
void take_out(Bucket& bucket, Thread** at) {
  Thread* thread = *at;
  *at = thread->link;
  if (bucket.last == &thread->link) bucket.last = at;
  thread->link = nullptr;
}

/// Of a thread that has left its stack: into its bucket, unless the word has changed or its time is over. It
/// may be running again when this returns.
void enter_bucket_unless_expired(Thread* thread, Worker* w, TimedWait* timed) {
  Bucket& bucket = bucket_of(thread->wait_address);
  const auto* word = static_cast<const std::atomic<uint32_t>*>(thread->wait_address);
  bucket.lock.lock();
  const bool changed =
      word->load(std::memory_order_seq_cst) != static_cast<uint32_t>(thread->wait_value);
  const bool expired = !changed && timed != nullptr && timed->expired;
  if (!changed && !expired) {
    append(bucket, thread);
    bucket.lock.unlock();
    return;
  }
  if (expired) timed->timed_out = true;
  bucket.lock.unlock();
  bucket.waiters.fetch_sub(1, std::memory_order_relaxed);
  make_ready(thread, w, true);
}

void enter_bucket(void* argument, Worker* w) {
  enter_bucket_unless_expired(static_cast<Thread*>(argument), w, nullptr);
}

void enter_bucket_timed(void* argument, Worker* w) {
  auto* timed = static_cast<TimedWait*>(argument);
  enter_bucket_unless_expired(timed->thread, w, timed);
}

/// Where a woken thread goes: the worker it ran on, if that has nothing to do, else the waker's if
/// that is within its bubble's reach.
Worker* place_for(Thread* thread, Worker* waker) {
  Worker* was = thread->worker;
  if (waker == nullptr || waker->pool != thread->pool ||
      was->idle.load(std::memory_order_relaxed) != 0 ||
      !in_reach(waker, with_reach(thread->bubble)))
    return was;
  return waker;
}

WaitEnd wait_in_kernel(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t deadline) {
  timespec left;
  if (deadline != kForever && !time_left(deadline, &left))
    return word.load(std::memory_order_acquire) == expected ? WaitEnd::kTimedOut : WaitEnd::kWoken;
  Bucket& bucket = bucket_of(&word);
  // As above; the second look is the kernel's, under its own lock.
  bucket.waiters.fetch_add(1, std::memory_order_seq_cst);
  const long answer = base::futex_wait(&word, expected, deadline != kForever ? &left : nullptr);
  bucket.waiters.fetch_sub(1, std::memory_order_relaxed);
  return answer == -ETIMEDOUT ? WaitEnd::kTimedOut : WaitEnd::kWoken;
}

/// Takes up to `count` threads that wait on `address`, linked by link, the first one first.
Thread* take_waiters(Bucket& bucket, const void* address, uint32_t count) {
  Thread* taken = nullptr;
  Thread** taken_last = &taken;
  uint32_t found = 0;
  bucket.lock.lock();
  for (Thread** at = &bucket.first; *at != nullptr && found < count;) {
    Thread* thread = *at;
    if (thread->wait_address != address) {
      at = &thread->link;
      continue;
    }
    take_out(bucket, at);
    *taken_last = thread;
    taken_last = &thread->link;
    ++found;
  }
  bucket.lock.unlock();
  bucket.waiters.fetch_sub(found, std::memory_order_relaxed);
  return taken;
}

void wake_in_kernel(const void* address, uint32_t count) {
  base::futex_wake(static_cast<const std::atomic<uint32_t>*>(address),
                   count < INT32_MAX ? static_cast<int>(count) : INT32_MAX);
}

void wake_slow(Bucket& bucket, const void* address, uint32_t count) {
  // Who counted itself has stored the flag before, or seen it; the fence turns the relaxed load of the
  // count into an acquire.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (BOSK_UNLIKELY(on_kernel_threads.load(std::memory_order_relaxed))) {
    wake_in_kernel(address, count);
    return;
  }
  Thread* me = context::self();
  if (me == nullptr) me = attach_calling_thread();
  Worker* w = enter(me);
  Thread* woken = take_waiters(bucket, address, count);
  while (woken != nullptr) {
    Thread* thread = woken;
    woken = thread->link;
    Worker* target = place_for(thread, w);
    // Another pool's thread may run, end, and its pool with it, before we are done with its worker.
    Pool* visited = thread->pool != w->pool ? thread->pool : nullptr;
    if (visited != nullptr) enter_pool(visited);
    make_ready(thread, target, false);
    if (target != w) {
      wake_worker(target);
      note_ready(target);
    } else {
      arm_timer(w);
      offer(w, kLookAround);
    }
    if (visited != nullptr) leave_pool(visited);
  }
  leave(me);
}

/// Where the thread ran, unless that worker is busy and another idles: a service thread has no worker of
/// its own to run it on, and workers that sleep do not look around.
Worker* idle_worker_for(const Thread* thread) {
  Worker* was = thread->worker;
  const Pool* pool = thread->pool;
  if (thread->pinned != nullptr || was->idle.load(std::memory_order_relaxed) != 0 ||
      pool->idle_count.load(std::memory_order_relaxed) == 0)
    return was;
  const Bubble* bubble = with_reach(thread->bubble);
  WorkerOrder order = order_from(was, 0, pool->worker_count.load(std::memory_order_acquire));
  for (uint32_t i; (i = order.next()) != WorkerOrder::kEnd;) {
    Worker* w = pool->worker(i);
    if (w != nullptr && w->idle.load(std::memory_order_relaxed) != 0 && may_take(w, bubble))
      return w;
  }
  return was;
}

/// By a service thread.
void make_ready_from_service(Thread* threads) {
  while (threads != nullptr) {
    Thread* thread = threads;
    threads = thread->link;
    Pool* pool = thread->pool;
    enter_pool(pool);
    make_ready(thread, idle_worker_for(thread), false);
    leave_pool(pool);
  }
}

/// What wait_on() does before it may have to leave its stack. False: the word has changed.
bool spin_briefly(const Thread* me, const std::atomic<uint32_t>& word, uint32_t expected) {
  for (int spins = 0; spins < 128; ++spins) {
    if (word.load(std::memory_order_acquire) != expected) return false;
    // With others ready here, or alone in the pool, spinning only delays whoever will change it.
    if (me->worker != nullptr && (!me->worker->ready.empty_hint() || has_entities(me->worker)))
      break;
    base::cpu_pause();
  }
  return true;
}

/// Counts the calling thread in; false: the word has changed.
bool count_in(Thread* me, const std::atomic<uint32_t>& word, uint32_t expected) {
  Bucket& bucket = bucket_of(&word);
  me->wait_address = &word;
  me->wait_value = expected;
  bucket.waiters.fetch_add(1, std::memory_order_seq_cst);
  if (word.load(std::memory_order_seq_cst) == expected) return true;
  bucket.waiters.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

/// Who counted in leaves its stack, and comes back when it is woken.
void block_in_bucket(Thread* me, Worker* w, Post post) {
  Bubble* outer_root = w->help_root.load(std::memory_order_relaxed);
  if (me->pinned != nullptr) w->help_root.store(me->bubble, std::memory_order_release);
  if (me == w->native && me->own == w->kernel.load(std::memory_order_relaxed))
    block_native(me, post);
  else
    block(me, post);
  if (me->pinned != nullptr) me->worker->help_root.store(outer_root, std::memory_order_release);
}

Worker* enter_outside_pauses(Thread* me) {
  Worker* w = enter(me);
  while (BOSK_UNLIKELY(pause_is_on())) {
    leave(me);
    wait_out_pause();
    w = enter(me);
  }
  return w;
}

}  // namespace

void give_way() {
  Thread* me = context::self();
  if (me == nullptr) return;
  if (BOSK_UNLIKELY(!can_multiplex(me->pool))) {
    base::raw_syscall(SYS_sched_yield);
    return;
  }
  enter_outside_pauses(me);
  let_worker_go_on(me);
  leave(me);
}

void wait_on(const std::atomic<uint32_t>& word, uint32_t expected) {
  Thread* me = context::self();
  if (me == nullptr) me = attach_calling_thread();
  const DoesMeanwhile waits(me, Does::kWaiting);
  if (!spin_briefly(me, word, expected)) return;
  if (BOSK_UNLIKELY(!can_multiplex(me->pool))) {
    wait_in_kernel(word, expected, kForever);
    return;
  }
  Worker* w = enter_outside_pauses(me);
  if (count_in(me, word, expected)) block_in_bucket(me, w, {enter_bucket, me});
  leave(me);
}

void wait_for_entity(Thread* me, const std::atomic<uint32_t>& word, uint32_t expected,
                     ExplicitThread* thread, Thread* carrier) {
  carrier->errand = Errand::kEntity;
  carrier->entity = thread;
  const bool counted = count_in(me, word, expected);
  BOSK_ASSERT(counted);
  static_cast<void>(counted);
  block_for(me, {enter_bucket, me}, carrier);
}

WaitEnd wait_on_until(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t deadline) {
  if (deadline == kForever) {
    wait_on(word, expected);
    return WaitEnd::kWoken;
  }
  Thread* me = context::self();
  if (me == nullptr) me = attach_calling_thread();
  const DoesMeanwhile waits(me, Does::kWaiting);
  if (!spin_briefly(me, word, expected)) return WaitEnd::kWoken;
  if (clock_now() >= deadline) {
    give_way();
    return WaitEnd::kTimedOut;
  }
  if (BOSK_UNLIKELY(!can_multiplex(me->pool))) return wait_in_kernel(word, expected, deadline);
  Worker* w = nullptr;
  for (;;) {
    if (ensure_clock(me) != 0) return WaitEnd::kNoClock;
    w = enter(me);
    if (BOSK_LIKELY(!pause_is_on() && clock_goes())) break;
    leave(me);
    wait_out_pause();
  }
  WaitEnd end = WaitEnd::kWoken;
  if (count_in(me, word, expected)) {
    TimedWait timed;
    timed.at = deadline;
    timed.thread = me;
    set_alarm(&timed);
    block_in_bucket(me, w, {enter_bucket_timed, &timed});
    cancel_alarm(&timed);
    if (timed.timed_out) end = WaitEnd::kTimedOut;
  }
  leave(me);
  return end;
}

void expire_wait(TimedWait* wait, Thread** due) {
  Thread* thread = wait->thread;
  // Constant until the thread has cancelled the alarm, for which it needs the clock's lock.
  Bucket& bucket = bucket_of(thread->wait_address);
  bucket.lock.lock();
  Thread** at = &bucket.first;
  while (*at != nullptr && *at != thread) at = &(*at)->link;
  if (*at == nullptr) {
    wait->expired = true;
    bucket.lock.unlock();
    return;
  }
  take_out(bucket, at);
  wait->timed_out = true;
  bucket.lock.unlock();
  bucket.waiters.fetch_sub(1, std::memory_order_relaxed);
  thread->link = *due;
  *due = thread;
}

void make_expired_ready(Thread* due) { make_ready_from_service(due); }

void wake_from_service(const std::atomic<uint32_t>& word) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Bucket& bucket = bucket_of(&word);
  if (bucket.waiters.load(std::memory_order_relaxed) == 0) return;
  std::atomic_thread_fence(std::memory_order_acquire);
  make_ready_from_service(take_waiters(bucket, &word, UINT32_MAX));
}

void address_wait_forget_after_fork() {
  for (Bucket& bucket : buckets) {
    new (&bucket.lock) base::SpinLock;
    bucket.waiters.store(0, std::memory_order_relaxed);
    bucket.first = nullptr;
  }
}

void wake_after_rmw(const std::atomic<uint32_t>& word, uint32_t count) {
  Bucket& bucket = bucket_of(&word);
  if (BOSK_LIKELY(bucket.waiters.load(std::memory_order_relaxed) == 0)) return;
  wake_slow(bucket, &word, count);
}

void wake(const std::atomic<uint32_t>& word, uint32_t count) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  wake_after_rmw(word, count);
}

}  // namespace bosk::sched
