// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timers of kernel threads, for what their ticks do (preemption.cpp). Others ask in preemption.h.
#pragma once

#include <stdint.h>

#include "context/identity.h"

namespace bosk::sched {

/// What ticks are for: their timers' values.
enum TickValue : int { kOrdinaryTick, kSampleTick };

uint64_t period_of_ticks(bool quick);
/// Who polls for what others do gets a short slice, of so many ns: the CPU does nothing of use, and those behind it go on
/// sooner. 0: an ordinary one. One tick; each sets it anew. `again`: others follow, as after tick_soon(), in case that
/// one meets the thread in the scheduler and is lost.
void set_slice(context::Identity* kernel, uint64_t ns, bool again = false);
/// The next tick comes soon, those after it as before.
void look_again_soon(context::Identity* kernel);
/// 0: before the thread goes on. From its own handler of ticks. False: there are no timers, only ordinary ticks.
bool look_again_in(context::Identity* kernel, uint64_t ns);
/// The next tick comes at once, and quick ones after it. Any kernel thread.
void tick_soon(context::Identity* kernel);

void arm_kernel_timer(context::Identity* kernel);
/// By its own kernel thread: leaves the flag up, which disarm_ticks_unless() lowers.
void stop_timer(context::Identity* kernel);
void disarm_timer(context::Identity* kernel);

}  // namespace bosk::sched
