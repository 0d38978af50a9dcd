// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pair of counters for each worker, opened by whoever plays it first.
#include "sched/worker_caches.h"

#include <atomic>

#include "base/syscalls.h"
#include "sched/worker.h"

namespace bosk::sched {
namespace {

constexpr uint32_t kCounters = 1024;

/// Claimed by `tid`, and used by that kernel thread only.
struct KernelCounter {
  std::atomic<int> tid{0};
  bool open = false;
  base::CacheCounter counter;
};
constinit KernelCounter kernel_counters[kCounters]{};
/// One kernel thread was refused: so are the others, and each would pay for asking.
constinit std::atomic<bool> no_counters{false};
constinit std::atomic<CacheReader> told_reader{nullptr};

}  // namespace

bool read_worker_caches(const Worker* w, base::CacheCount* count) {
  if (w == nullptr) return false;
  // relaxed: set before there are workers.
  if (CacheReader reader = told_reader.load(std::memory_order_relaxed)) return reader(w, count);
  if (no_counters.load(std::memory_order_relaxed) || w->index >= kCounters) return false;
  KernelCounter& mine = kernel_counters[w->index];
  const int tid = base::thread_id();
  int owner = mine.tid.load(std::memory_order_relaxed);
  if (owner == 0 && mine.tid.compare_exchange_strong(owner, tid, std::memory_order_relaxed)) {
    mine.open = mine.counter.open();
    if (!mine.open) no_counters.store(true, std::memory_order_relaxed);
    owner = tid;
  }
  return owner == tid && mine.open && mine.counter.read(count);
}

bool can_read_caches() {
  if (told_reader.load(std::memory_order_relaxed) != nullptr) return true;
  base::CacheCounter counter;
  if (!counter.open()) return false;
  counter.close();
  return true;
}

void forget_worker_caches() {
  for (KernelCounter& mine : kernel_counters) {
    if (mine.tid.load(std::memory_order_relaxed) == 0) continue;
    // Of another thread, which may have been in the middle of opening it: the descriptor is left open.
    mine.open = false;
    mine.counter = base::CacheCounter{};
    mine.tid.store(0, std::memory_order_relaxed);
  }
}

void set_cache_reader(CacheReader reader) { told_reader.store(reader, std::memory_order_relaxed); }

}  // namespace bosk::sched
