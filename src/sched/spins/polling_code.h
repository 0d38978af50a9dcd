// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where members were found to poll: the instructions of their loops, and the regions.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"

namespace bosk::sched {

/// A set of addresses, of the process. An entry that is wrong, or of what was unloaded and is other code now, makes a slice short,
/// and is forgotten when it is found to be.
///
/// Any kernel thread, also in a tick's handler. relaxed: an address is all there is to see.
class PollingCode {
 public:
  /// Nothing was ever noted: what the path of every region asks.
  bool empty() const { return !any_.load(std::memory_order_relaxed); }

  bool has(uintptr_t address) const {
    if (empty()) return false;
    for (uint32_t i = 0; i < kTries; ++i)
      if (slot(address, i).load(std::memory_order_relaxed) == address) return true;
    return false;
  }

  /// Where all places for it are taken it stays unknown: members are then found to poll by looking twice.
  void note(uintptr_t address) {
    for (uint32_t i = 0; i < kTries; ++i) {
      uintptr_t there = slot(address, i).load(std::memory_order_relaxed);
      if (there == 0 &&
          slots_[at(address, i)].compare_exchange_strong(there, address, std::memory_order_relaxed))
        there = address;
      if (there != address) continue;
      if (empty()) any_.store(true, std::memory_order_relaxed);
      return;
    }
  }

  void forget(uintptr_t address) {
    for (uint32_t i = 0; i < kTries; ++i) {
      uintptr_t there = address;
      slots_[at(address, i)].compare_exchange_strong(there, 0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr uint32_t kSlots = 256;
  static constexpr uint32_t kTries = 8;

  static uint32_t at(uintptr_t address, uint32_t attempt) {
    const auto hash = static_cast<uint32_t>((address * 0x9e37'79b9'7f4a'7c15u) >> 40);
    return (hash + attempt) % kSlots;
  }
  const std::atomic<uintptr_t>& slot(uintptr_t address, uint32_t attempt) const {
    return slots_[at(address, attempt)];
  }

  std::atomic<bool> any_{false};
  std::atomic<uintptr_t> slots_[kSlots] = {};
};

/// The loops, by blocks of 16 bytes in which their instructions are.
constexpr uintptr_t block_of_code(uintptr_t program_counter) {
  return program_counter & ~uintptr_t{15};
}
inline constinit PollingCode polling_loops;

}  // namespace bosk::sched
