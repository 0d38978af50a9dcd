// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding of workers' kernel threads, when it was asked for.
#include "sched/configuration.h"
#include "sched/scheduler.h"

namespace bosk::sched {

void bind_worker(Worker* w) {
  if (configuration().bind_hook != nullptr) configuration().bind_hook(w);
}

void follow_place(Thread* me) {
  if (configuration().place_hook != nullptr) configuration().place_hook(me);
}

}  // namespace bosk::sched
