// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocking on a word: a hash table of waiting threads, like the kernel's futex table.
//
// No lost wake-up: a waiter first counts itself in its bucket (seq_cst), then looks at the word; a
// waker first changes the word, then (full fence) looks at the count. One of the two sees the other.
// A waker that sees the count takes the bucket's lock; the waiter is put into the bucket, after it has
// left its stack, under the same lock and only if the word still has the expected value.
#include "sched/address_wait.h"

#include <new>

#include "sched/kernel_threads.h"
#include "sched/mates.h"
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

void enter_bucket(void* argument, Worker* w) {
  auto* thread = static_cast<Thread*>(argument);
  Bucket& bucket = bucket_of(thread->wait_address);
  const auto* word = static_cast<const std::atomic<uint32_t>*>(thread->wait_address);
  bucket.lock.lock();
  if (word->load(std::memory_order_seq_cst) == static_cast<uint32_t>(thread->wait_value)) {
    append(bucket, thread);
    bucket.lock.unlock();
    return;
  }
  bucket.lock.unlock();
  bucket.waiters.fetch_sub(1, std::memory_order_relaxed);
  make_ready(thread, w, true);
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

void wait_in_kernel(const std::atomic<uint32_t>& word, uint32_t expected) {
  Bucket& bucket = bucket_of(&word);
  // As above; the second look is the kernel's, under its own lock.
  bucket.waiters.fetch_add(1, std::memory_order_seq_cst);
  base::futex_wait(&word, expected);
  bucket.waiters.fetch_sub(1, std::memory_order_relaxed);
}

void wake_slow(Bucket& bucket, const void* address, uint32_t count) {
  // Who counted itself has stored the flag before, or seen it; the fence turns the relaxed load of the
  // count into an acquire.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (BOSK_UNLIKELY(on_kernel_threads.load(std::memory_order_relaxed))) {
    base::futex_wake(static_cast<const std::atomic<uint32_t>*>(address),
                     count < INT32_MAX ? static_cast<int>(count) : INT32_MAX);
    return;
  }
  Thread* me = context::self();
  if (me == nullptr) me = attach_calling_thread();
  Worker* w = enter(me);
  Thread* woken = nullptr;
  Thread** woken_last = &woken;
  uint32_t found = 0;
  bucket.lock.lock();
  for (Thread** at = &bucket.first; *at != nullptr && found < count;) {
    Thread* thread = *at;
    if (thread->wait_address != address) {
      at = &thread->link;
      continue;
    }
    *at = thread->link;
    if (bucket.last == &thread->link) bucket.last = at;
    thread->link = nullptr;
    *woken_last = thread;
    woken_last = &thread->link;
    ++found;
  }
  bucket.lock.unlock();
  bucket.waiters.fetch_sub(found, std::memory_order_relaxed);
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

}  // namespace

void wait_on(const std::atomic<uint32_t>& word, uint32_t expected) {
  Thread* me = context::self();
  if (me == nullptr) me = attach_calling_thread();
  for (int spins = 0; spins < 128; ++spins) {
    if (word.load(std::memory_order_acquire) != expected) return;
    // With others ready here, or alone in the pool, spinning only delays whoever will change it.
    if (me->worker != nullptr && (!me->worker->ready.empty_hint() || has_entities(me->worker)))
      break;
    base::cpu_pause();
  }
  if (BOSK_UNLIKELY(!can_multiplex(me->pool))) {
    wait_in_kernel(word, expected);
    return;
  }
  Worker* w = enter(me);
  while (BOSK_UNLIKELY(pause_is_on())) {
    leave(me);
    wait_out_pause();
    w = enter(me);
  }
  if (BOSK_UNLIKELY(has_mates(me))) {
    // The identity's other contexts run meanwhile; the caller looks again.
    wait_a_turn(me);
    leave(me);
    return;
  }
  Bucket& bucket = bucket_of(&word);
  bucket.waiters.fetch_add(1, std::memory_order_seq_cst);
  if (word.load(std::memory_order_seq_cst) != expected) {
    bucket.waiters.fetch_sub(1, std::memory_order_relaxed);
    leave(me);
    return;
  }
  me->wait_address = &word;
  me->wait_value = expected;
  Bubble* outer_root = w->help_root.load(std::memory_order_relaxed);
  if (me->pinned != nullptr) w->help_root.store(me->bubble, std::memory_order_release);
  block(me, {enter_bucket, me});
  if (me->pinned != nullptr) me->worker->help_root.store(outer_root, std::memory_order_release);
  leave(me);
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
