// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adds cycles up by account.
#include "sched/meter.h"

#include "base/cpu.h"
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
  return account.cycles != nullptr &&
         account.epoch == detail::metered_region.load(std::memory_order_relaxed);
}

void meter(Worker* w, const Thread* next) {
  const uint64_t now = base::cycles();
  if (is_open(w->metered))
    w->metered.cycles->fetch_add(now - w->metered_since, std::memory_order_relaxed);
  w->metered = next->account;
  w->metered_since = now;
}

}  // namespace bosk::sched
