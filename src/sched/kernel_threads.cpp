// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel thread per OpenMP thread: deciding it, sub-pools, and waiting.
#include "sched/kernel_threads.h"

#include <string.h>
#include <time.h>

#include "base/message.h"
#include "context/identity.h"
#include "context/observers.h"
#include "sched/configuration.h"
#include "sched/homes.h"
#include "sched/monitor.h"
#include "sched/scheduler.h"
#include "sched/task_calls.h"

namespace bosk::sched {
namespace {

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void park_until(Worker* w, Thread* me, bool (*condition)(Thread*), const Bubble* root) {
  begin_sleep(w, root);
  // Whoever makes something known to the whole pool looks at this count first (wake_all_parked()).
  w->pool->parked.fetch_add(1, std::memory_order_relaxed);
  w->spot.prepare();
  // After the barrier in prepare(): whoever changed something before sees us asleep, or we see it.
  if (condition(me) || w->call.is_called()) {
    w->spot.cancel();
  } else {
    const uint64_t from = now_ns();
    w->spot.sleep();
    note_sleep(w, now_ns() - from);
  }
  w->pool->parked.fetch_sub(1, std::memory_order_relaxed);
  end_sleep(w);
}

}  // namespace

/// Members that spin for each other rely on ticks, and those behind who is blocked in the kernel on the
/// monitor; either may be refused. True: those timers that the pool needs until now are there; workers that are
/// made later come with theirs or not at all.
static bool can_preempt(Pool* pool) {
  static constinit base::SayOnce once;
  if (configuration().preempt_period_us == 0) return true;
  int error = 0;
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers && error == 0; ++i)
    error = make_timer(pool->worker(i)->kernel.load(std::memory_order_acquire));
  const char* what = "a timer";
  if (error == 0) {
    what = "the thread that looks after blocked ones";
    error = ensure_monitor(pool->initial);
  }
  if (error != 0 && once.first())
    base::say(
        "cannot make %s (%s), so threads cannot be preempted; using one kernel thread per OpenMP thread",
        what, strerrordesc_np(error));
  return error == 0;
}

/// A text that is not there yet, because another thread writes it just now, must not look like no obstacle.
static const char* or_else(const char* text, const char* other) {
  return text != nullptr ? text : other;
}

/// Null: user-level threads can be had.
static const char* find_obstacle(Pool* pool) {
  if (context::threads_are_addressed())
    return or_else(context::addressing_name(), "threads are sent signals");
  if (context::provider() != context::Provider::kDonors)
    return or_else(context::provider_obstacle(), "no identities of their own");
  return can_preempt(pool) ? nullptr : "nothing to preempt threads by";
}

bool decide_threading(Pool* pool) {
  const bool known = on_kernel_threads.load(std::memory_order_relaxed);
  const char* obstacle = known ? nullptr : find_obstacle(pool);
  const bool multiplexed = !known && obstacle == nullptr;
  if (obstacle != nullptr) why_kernel_threads.store(obstacle, std::memory_order_relaxed);
  const Threading answer = multiplexed ? Threading::kMultiplexed : Threading::kKernelThreads;
  // relaxed: all who ask get the same answer, in whatever order they see it. Stored once: others read
  // what lies beside it.
  if (!multiplexed && !on_kernel_threads.load(std::memory_order_relaxed))
    on_kernel_threads.store(true, std::memory_order_relaxed);
  if (pool->threading.load(std::memory_order_relaxed) != answer)
    pool->threading.store(answer, std::memory_order_relaxed);
  return multiplexed;
}

void enter_sub_pool(Thread* me, uint32_t size) {
  Worker* outer = me->worker;
  Pool* inner = outer->inner;
  if (inner == nullptr) inner = outer->inner = make_sub_pool(me);
  Worker* w = inner->worker(0);
  me->pool = inner;
  me->pinned = me->last_worker = w;
  set_seen(&me->worker, w);
  if (inner->worker_count.load(std::memory_order_relaxed) < size) require_workers(inner, size);
}

void leave_sub_pool(Thread* me) {
  Worker* outer = me->pool->outer;
  me->pool = outer->pool;
  me->pinned = me->last_worker = outer;
  set_seen(&me->worker, outer);
}

void wait_on_kernel_thread(Thread* me, bool (*condition)(Thread*), const Bubble* root) {
  constexpr uint32_t kLookEvery = 64;
  Worker* w = me->worker;
  Pool* pool = w->pool;
  const uint64_t us = base::cycles_per_microsecond();
  while (!condition(me)) {
    if (is_crowded(pool)) {
      park_until(w, me, condition, root);
      continue;
    }
    const uint64_t spin_cycles = pool->spin_cycles;
    const uint64_t start = base::cycles();
    uint64_t last_look = start;
    for (uint32_t i = 1; !condition(me); ++i) {
      base::cpu_pause();
      if (i % kLookEvery != 0) continue;
      const uint64_t now = base::cycles();
      pool->rivals.note_gap(now, now - last_look, us);
      last_look = now;
      look_if_due(w, now);
      if (now - start > pool->rivals.poll(now, spin_cycles, us) ||
          pool->group->sleeps_at_once.load(std::memory_order_relaxed)) {
        park_until(w, me, condition, root);
        break;
      }
      // Whoever is waited for may have lost its CPU to this very loop.
      if (i % (16 * kLookEvery) == 0) base::raw_syscall(SYS_sched_yield);
    }
  }
  if (BOSK_UNLIKELY(w->called_for != nullptr)) answer_call_by_native(w, root);
}

}  // namespace bosk::sched
