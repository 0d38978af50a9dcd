// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The monitor: a kernel thread that looks after those which are blocked in the kernel while somebody waits for
// their worker.
//
// Ticks are timers on a kernel thread's own CPU clock: who is blocked gets none, and so none of his calls is
// interrupted. But the worker that he plays has others to run. So once a period, and more often while there is
// something to do, the monitor looks at each kernel thread whose ticks are on:
//
//     CPU clock      has it run for half of the time since the last look?      then its ticks do all
//     its worker     does anything wait there, or elsewhere in the pool?       else it is left alone
//     /proc          is it in a system call? in which, since when?             else it has no CPU
//     a tick         it is told what was seen (CallNote), and finds out in its handler what is to be done: the
//                    worker's role goes to another kernel thread, or the thread goes to its own
//
// It sleeps while no ticks are on, and while all that has ticks is blocked and nobody waits for it. Cost: a look
// 0.3 to 1 us, /proc some 10 us; where nothing is multiplexed and one initial thread alone opens regions
// there is no monitor. It also looks after those that poll outside of regions (spins/outside.h).
#pragma once

#include "sched/thread.h"

namespace bosk::sched {

/// Sees to it that it runs: 0, or an errno value. Preemption is on.
int ensure_monitor(const Thread* me);
/// A timer has just been armed; it may sleep. Any kernel thread.
void tell_monitor();
/// A tick for the kernel thread, at once. Any kernel thread. False: the system refuses it.
bool send_tick(context::Identity* kernel);

/// The same, unless it is in the kernel for longer: who waits there must not be interrupted by whoever wants his worker.
void send_tick_if_it_runs(context::Identity* kernel);

/// The monitor's: is the kernel thread in user mode, or about to be, with a CPU or without? Where there is no /proc: has it one?
bool wants_cpu(const context::Identity* kernel);

void stop_monitor();
void monitor_forget_after_fork();

}  // namespace bosk::sched
