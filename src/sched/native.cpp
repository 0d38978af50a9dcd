// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native threads: a worker's own POSIX identity. Members of flat teams run on them.
#include "sched/configuration.h"
#include "sched/homes.h"
#include "sched/kernel_threads.h"
#include "sched/pool_list.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"
#include "sched/task_calls.h"

namespace bosk::sched {
namespace {

constexpr int kCrowdedSpins = 32;  ///< with more threads than processors

void nothing(void*, Worker*) {}

bool job_is_there(Thread* me) {
  Worker* w = me->pinned;
  return w->job.sequence.load(std::memory_order_acquire) != w->job_seen ||
         may_help_again(w->ended_native);
}

/// Under a passive wait policy the calling thread has just woken the one that it waits for. That takes
/// the kernel long if it is to run on an idle PU, and is quicker by far if this one is free: true, the
/// caller sleeps at once. But if wake-ups follow each other quickly it waits until both run; then none
/// of them need sleep any more.
bool wait_for_woken(Thread* me, bool (*condition)(Thread*)) {
  Worker* w = me->pinned;
  const uint64_t window = me->pool->wake_window_cycles;
  w->woke_sleeper = false;
  if (window == 0) return false;
  const uint64_t now = base::cycles();
  const bool seldom = now - w->woke_at > window;
  w->woke_at = now;
  if (seldom) return true;
  while (!condition(me) && base::cycles() - now < window) base::cpu_pause();
  return false;
}

}  // namespace

void native_wait(Thread* me, bool (*condition)(Thread*), Bubble* root) {
  // Short waits are over before it pays to tell anybody that this worker is idle.
  const bool sleep_at_once =
      BOSK_UNLIKELY(me->pinned->woke_sleeper) && wait_for_woken(me, condition);
  for (int spins = sleep_at_once ? 255 : 0; spins < 256; ++spins) {
    if (condition(me)) return;
    base::cpu_pause();
    // Whoever is waited for may need this very CPU.
    if (BOSK_UNLIKELY(spins == kCrowdedSpins) && is_crowded(me->pool)) break;
  }
  if (BOSK_UNLIKELY(me->pool->threading.load(std::memory_order_relaxed) ==
                    Threading::kKernelThreads)) {
    wait_on_kernel_thread(me, condition, root);
    return;
  }
  Worker* w = enter(me);
  Bubble* outer_root = w->help_root.load(std::memory_order_relaxed);
  w->help_root.store(root, std::memory_order_release);
  while (!condition(me)) {
    w->native_condition.set(condition);
    if (w->ready.empty_hint() && !has_ghosts(w) && (w->groups == nullptr || !a_group_is_open(w)) &&
        idle_until_work(w, sleep_at_once))
      break;
    if (BOSK_UNLIKELY(w->called_for != nullptr) && !w->ready.empty_hint()) hand_call_on(w);
    // There is something to do: a carrier does it, and comes back here when the condition holds.
    block(me, {nothing, nullptr});
    w = me->worker;
  }
  w->native_condition.end(pools.look_at_native);
  w->help_root.store(outer_root, std::memory_order_release);
  leave(me);
}

void block_native(Thread* me, Post post) {
  Worker* w = me->worker;
  const auto something_to_run = [w] {
    return !w->ready.empty_hint() || has_ghosts(w) || has_entities(w) ||
           (w->groups != nullptr && a_group_is_open(w));
  };
  if (something_to_run()) {
    block(me, post);
    return;
  }
  if (w->unreported_groups != 0) report_arrivals(w);
  add_seen(&w->counts.blocked);
  // It is findable before it has left its stack: only this worker may run it, and that is here. A thousand
  // that waited for carriers first, one each, could not be woken meanwhile.
  post.action(post.argument, w);
  for (;;) {
    if (Thread* next = pop_ready(w)) {
      if (BOSK_LIKELY(next == me)) return;
      report_before(w, next->bubble);
      switch_to(w, me, next);
      return;
    }
    if (!something_to_run()) idle_until_work(w);
    if (!w->ready.empty_hint() && BOSK_LIKELY(!gangs_exist())) continue;
    if (Thread* carrier = take_carrier(w)) {
      switch_to(w, me, carrier);
      return;
    }
    wait_for_carrier(w);
  }
}

bool post_job(Worker* target, Bubble* bubble, uint64_t sequence, const NativeJob& what) {
  target->job.bubble = bubble;
  target->job.what = what;
  // release: the team's fields and the job are written before.
  target->job.sequence.store(sequence, std::memory_order_release);
  return wake_worker(target);
}

void native_loop(Thread* me) {
  leave(me);
  Worker* home = me->pinned;
  for (;;) {
    native_wait(me, job_is_there, nullptr);
    const uint64_t sequence = home->job.sequence.load(std::memory_order_acquire);
    if (sequence == home->job_seen) {
      enter(me);
      help_team_as_native(me);
      leave(me);
      continue;
    }
    home->job_seen = sequence;
    home->ended_native.bubble = nullptr;
    Bubble* bubble = home->job.bubble;
    if (bubble == nullptr) return;  // the pool ends
    if (BOSK_UNLIKELY(home->look_due.load(std::memory_order_relaxed))) {
      enter(me);
      look_after_home(home);
      leave(me);
    }
    configuration().native_hook(bubble, me, home->job.what);
  }
}

}  // namespace bosk::sched
