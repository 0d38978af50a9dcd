// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A lock that may be held long: who waits sleeps in the kernel. Preemption is on.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "base/syscalls.h"

namespace bosk::base {

class SleepingLock {
 public:
  void lock() {
    uint32_t seen = kFree;
    // acquire pairs with the release in unlock(): the holder sees what the last one wrote.
    if (BOSK_LIKELY(state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire,
                                                   std::memory_order_relaxed)))
      return;
    // Who slept cannot know whether others sleep, too, and takes it as contended.
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree)
      futex_wait(&state_, kContended);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) futex_wake(&state_, 1);
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kContended = 2;
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace bosk::base
