// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Timer preemption: signal-yield, promotion to the thread's own kernel thread, and the way back.
#pragma once

#include <stdint.h>

#include "context/switch.h"
#include "sched/worker.h"

namespace bosk::sched {

/// The worker `w` has more than one thing to run: its timer must tick. At most one system call a
/// period; a flag test when the timer runs already.
void arm_timer_slow(Worker* w);
inline void arm_timer(Worker* w) {
  const context::Identity* kernel = w->kernel.load(std::memory_order_relaxed);
  if (BOSK_UNLIKELY(kernel->timer_armed.load(std::memory_order_relaxed) == 0)) arm_timer_slow(w);
}

/// Something was put on the queue of a worker that may be running user code: arms its timer if it
/// does not tick. Any kernel thread.
void note_ready(Worker* target);

/// What runs on the worker shall look at a tick's errands: the next one comes at once, and quick ones after it in case
/// it is not preemptible just then. One system call. Any kernel thread.
void tick_soon(Worker* target);

/// The kernel thread, which had no such ticks before, is sampled by one whenever it has had a CPU for so long. Not where preemption is
/// off, or the kernel has no timer. Any kernel thread.
void sample_from_now_on(context::Identity* kernel);

/// The thread that runs on the worker is looked at once, by a tick for nothing else (spins/poll_looks.h), if there are no ordinary
/// ticks. Any kernel thread.
void look_soon(const Worker* target);

/// `to` is pinned to another kernel thread than the one that plays `w` now: the role goes back to it,
/// and this kernel thread returns to its park loop. Returns as bosk_context_switch() does when `from` is
/// run again.
context::FloatControl hand_role_over(Worker* w, Thread* from, Thread* to);

/// Some worker may never tick: preemption is off, or the kernel has no timer for it. Set before anybody relies
/// on ticks, or by who finds out; relaxed: idle workers look at it time and again.
inline constinit std::atomic<bool> ticks_may_miss{false};

/// The calling thread, which plays no role for good (`pinned`), goes on on its identity's own kernel thread, until it next calls the
/// runtime or a tick finds it outside of a system call. Preemption is on.
void go_to_own_kernel_thread(Thread* me);

/// Ticks are served from now on.
void start_preemption();
/// The kernel thread's timer, before anything relies on its ticks: 0, or an errno value. Any kernel thread.
int make_timer(context::Identity* kernel);
/// The kernel thread ends, and its timer with it.
void delete_timer(context::Identity* kernel);

}  // namespace bosk::sched
