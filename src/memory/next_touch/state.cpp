// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The objects of state.h.
#include "memory/next_touch/state.h"

#include <string.h>
#include <sys/mman.h>

namespace bosk::memory {
namespace {

// Chunks share locks by address. A line each: neighbouring chunks are resolved at the same time.
struct alignas(64) ChunkLock {
  base::SleepingLock lock;
};
constexpr size_t kLocks = 256;
constinit ChunkLock locks[kLocks] = {};

}  // namespace

constinit State state = {};

void count(const Brought& brought) {
  count(state.counters.moved, brought.moved);
  count(state.counters.local, brought.local);
  count(state.counters.stayed, brought.stayed);
  count(state.counters.no_room, brought.no_room);
  count(state.counters.absent, brought.absent);
  count(state.counters.lost, brought.lost);
  count(state.counters.exchanged, brought.exchanged);
}

base::SleepingLock& lock_of_chunk(uintptr_t at) { return locks[at / kChunkBytes % kLocks].lock; }

void reset_chunk_locks() { memset(static_cast<void*>(locks), 0, sizeof locks); }

namespace {

/// Mapped once, and for good. 0: no memory.
uintptr_t page_of_ours(std::atomic<uintptr_t>& page, int prot) {
  uintptr_t known = page.load(std::memory_order_relaxed);
  if (known != 0) return known;
  void* mine = base::map_pages(base::kPage);
  if (mine == nullptr) return 0;
  base::raw_syscall(SYS_mprotect, base::address_of(mine), base::kPage, prot);
  if (page.compare_exchange_strong(known, reinterpret_cast<uintptr_t>(mine),
                                   std::memory_order_relaxed))
    return reinterpret_cast<uintptr_t>(mine);
  base::unmap_pages(mine, base::kPage);
  return known;
}

}  // namespace

uintptr_t unreadable_page() {
  static constinit std::atomic<uintptr_t> page{0};
  return page_of_ours(page, PROT_NONE);
}

uintptr_t untouched_page() {
  static constinit std::atomic<uintptr_t> page{0};
  return page_of_ours(page, PROT_READ | PROT_WRITE);
}

}  // namespace bosk::memory
