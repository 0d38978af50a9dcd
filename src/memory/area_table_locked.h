// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two states of a table in somebody's hands: locked, and written to.
#pragma once

#include "memory/area_table.h"

namespace bosk::memory {

/// Holds the lock; owners that have gone by then are out of the table.
struct AreaTable::Locked {
  explicit Locked(AreaTable& held) : table(held) {
    table.lock_.lock();
    table.take_gone_owners();
  }
  ~Locked() { table.lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  AreaTable& table;
};

/// A write section. By who holds the lock.
class AreaTable::Writing {
 public:
  explicit Writing(AreaTable& table) : version_(table.version_) {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // Who sees one of the stores behind this sees that a section has begun.
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Writing() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  std::atomic<uint32_t>& version_;
};

}  // namespace bosk::memory
