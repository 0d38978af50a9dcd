// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding of the kernel threads that run bound members, when it was asked for.
#include "sched/configuration.h"
#include "sched/scheduler.h"

namespace bosk::sched {

void follow_place(Thread* me) {
  if (configuration().place_hook != nullptr) configuration().place_hook(me);
}

}  // namespace bosk::sched
