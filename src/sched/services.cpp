// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All service threads together: what pauses and forked children do to them.
#include "sched/services.h"

#include "sched/clock.h"
#include "sched/fd_wait.h"
#include "sched/monitor.h"
#include "sched/time_samples.h"
#include "sched/wishes.h"

namespace bosk::sched {

bool services_are_needed() { return poller_is_needed(); }

void stop_services() {
  stop_monitor();
  stop_sampling();
  stop_serving_wishes();
  stop_clock();
  stop_poller();
  // acquire: it is constant, and there when it is seen.
  if (const OtherService* other = other_service.load(std::memory_order_acquire)) other->stop();
}

void services_forget_after_fork() {
  // relaxed: there is one thread.
  process_generation.store(process_generation.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
  monitor_forget_after_fork();
  sampling_forget_after_fork();
  wishes_forget_after_fork();
  clock_forget_after_fork();
  poller_forget_after_fork();
  if (const OtherService* other = other_service.load(std::memory_order_relaxed))
    other->forget_after_fork();
}

}  // namespace bosk::sched
