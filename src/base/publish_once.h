// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A value that is made at its first use, without a lock.
#pragma once

#include <atomic>

#include "base/cpu.h"

namespace bosk::base {

/// Whoever comes while there is no value makes one; the first to publish wins and the others
/// discard theirs. Nobody ever waits: the maker may be preempted, be in a signal handler, or be a
/// thread that a fork left behind. Constant-initialised; the value is read-only and stays for good.
template <typename T>
class PublishOnce {
 public:
  /// Null until the first publish().
  const T* get() const {
    // acquire pairs with the release in publish(): what the maker wrote is seen.
    return value_.load(std::memory_order_acquire);
  }
  /// True for the one whose value is kept. A loser throws its own away and uses get().
  bool publish(const T* made) {
    const T* none = nullptr;
    return value_.compare_exchange_strong(none, made, std::memory_order_acq_rel,
                                          std::memory_order_acquire);
  }

 private:
  std::atomic<const T*> value_{nullptr};
};

}  // namespace bosk::base
