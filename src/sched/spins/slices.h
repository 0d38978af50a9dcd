// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long who goes on at a tick has, until the next one. Called by ticks, of the kernel thread that they came to.
#pragma once

#include <stdint.h>

#include "sched/worker.h"

namespace bosk::sched {

/// How long `next` has, which goes on after a thread that polls (`after_poll`) or its slice's end.
uint64_t first_slice(const Worker* w, const Thread* next, bool after_poll);

/// Who computes in a team that polls goes on for twice as long, until it has had an ordinary slice. True: it goes on.
bool goes_on(Thread* me, context::Identity* kernel);

/// A gang's turn begins while the worker finds nothing of it to run (its members are about to leave another worker, or there is no carrier
/// yet): it looks again soon, and then less often. False: it has done so for as long as an ordinary slice lasts.
bool look_for_gang_again(Thread* me, context::Identity* kernel);

/// In its team's joint turn. False: it polls, and was in the same state at the last tick.
bool gets_on_in_turn(Thread* me, context::Identity* kernel, const Sight& sight);

}  // namespace bosk::sched
