// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adds CPU time up by account.
#include "sched/meter.h"

#include <time.h>

#include "base/syscalls.h"
#include "sched/worker.h"

namespace bosk::sched {

namespace detail {
constinit std::atomic<uint64_t> metered_region{0};
}

uint64_t start_metering() {
  static constinit std::atomic<uint64_t> regions{0};
  if (metering()) return 0;
  const uint64_t epoch = regions.fetch_add(1, std::memory_order_relaxed) + 1;
  uint64_t none = 0;
  // relaxed: accounts are only counters, and members see the region's own by the way they are started.
  return detail::metered_region.compare_exchange_strong(none, epoch, std::memory_order_relaxed)
             ? epoch
             : 0;
}

void stop_metering() { detail::metered_region.store(0, std::memory_order_relaxed); }

bool is_open(const Account& account) {
  return account.spent != nullptr &&
         account.epoch == detail::metered_region.load(std::memory_order_relaxed);
}

namespace {

/// CPU time of the calling kernel thread, in ns. Of the kernel's, not of the time-stamp counter: on a busy
/// machine that would add what other processes took meanwhile.
uint64_t cpu_time() {
  timespec t{};
  base::raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, base::address_of(&t));
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

void meter(Worker* w, const Thread* next) {
  const uint64_t now = cpu_time();
  // relaxed: the caller plays the role; another kernel thread may have done so last time, with a clock of
  // its own.
  const context::Identity* kernel = w->kernel.load(std::memory_order_relaxed);
  if (is_open(w->metered) && w->metered_on == kernel && now > w->metered_since)
    w->metered.spent->fetch_add(now - w->metered_since, std::memory_order_relaxed);
  w->metered = next->account;
  w->metered_since = now;
  w->metered_on = kernel;
}

}  // namespace bosk::sched
