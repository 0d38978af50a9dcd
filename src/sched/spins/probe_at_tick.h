// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A worker's probe, fed by the handler of ticks.
#pragma once

#include "base/syscalls.h"
#include "sched/tick_timer.h"
#include "sched/worker.h"

namespace bosk::sched {

/// A look at `me` by the kernel thread that runs it (SpinProbe::look()). kLookAgain: the next tick is asked for. A system call for each
/// look after the first.
inline SpinProbe::Verdict probe_at_tick(Worker* w, Thread* me, context::Identity* kernel,
                                        const Sight& sight, bool is_known) {
  SpinProbe& probe = w->probe;
  const bool again = probe.watches(me);
  uint64_t absences = again ? base::times_off_cpu() : 0;
  const auto verdict = probe.look(me, sight, base::cycles(), absences, is_known);
  if (verdict != SpinProbe::Verdict::kLookAgain) return verdict;
  if (!again) absences = base::times_off_cpu();
  if (!look_again_in(kernel, probe.end_look(base::cycles(), absences))) probe.leave_to_ticks();
  return verdict;
}

}  // namespace bosk::sched
