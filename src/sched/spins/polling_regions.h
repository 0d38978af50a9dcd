// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of regions whose members were found to poll for each other: they are expected to poll the next time.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"

namespace bosk::sched {

/// Of the process. That members are not found to poll proves little: in a joint turn each finds at once what it waits for. So a function
/// is forgotten when nobody was found polling in it for a while, and for twice as long each time that it turns out to have been right. One that
/// was noted by mistake has short slices and joint turns for no longer than that.
///
/// Any kernel thread. relaxed: preferences; of two that write at once one is lost. Times are in cycles.
class PollingRegions {
 public:
  /// Nothing was ever noted: what the path of every region asks.
  bool empty() const { return !any_.load(kRelaxed); }

  bool has(uintptr_t function) const {
    if (empty()) return false;
    const Region* region = find(function);
    return region != nullptr && region->is_expected.load(kRelaxed);
  }

  /// Members of a region that ends polled. Where all places for it are taken it stays unknown: members are found to poll each time.
  void note_polling(uintptr_t function, uint64_t now) {
    Region* region = find_or_add(function);
    if (region == nullptr) return;
    region->quiet_since.store(now, kRelaxed);
    region->quiet.store(0, kRelaxed);
    if (!region->is_expected.load(kRelaxed)) region->is_expected.store(true, kRelaxed);
    if (empty()) any_.store(true, kRelaxed);
  }

  /// It was expected, and nobody was found to.
  void note_quiet(uintptr_t function, uint64_t now) {
    Region* region = find(function);
    if (region == nullptr || !region->is_expected.load(kRelaxed) ||
        region->quiet.fetch_add(1, kRelaxed) + 1 < kFewest)
      return;
    const uint32_t doublings = region->doublings.load(kRelaxed);
    // Signed: another CPU's clock may be a little behind.
    const auto quiet = static_cast<int64_t>(now - region->quiet_since.load(kRelaxed));
    if (quiet < static_cast<int64_t>(kPatienceUs << doublings) *
                    static_cast<int64_t>(base::cycles_per_microsecond()))
      return;
    if (doublings < kMostDoublings) region->doublings.store(doublings + 1, kRelaxed);
    region->is_expected.store(false, kRelaxed);
  }

  /// How long one that is quiet is remembered at first, and how many times at least it has been by then.
  static constexpr uint64_t kPatienceUs = 100'000;
  static constexpr uint32_t kFewest = 4;

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  static constexpr uint32_t kRegions = 256;
  static constexpr uint32_t kTries = 8;
  static constexpr uint32_t kMostDoublings = 16;  // two hours

  /// A place is a function's for good.
  struct Region {
    std::atomic<uintptr_t> function{0};
    std::atomic<uint64_t> quiet_since{0};
    std::atomic<uint32_t> quiet{0};  ///< times since then
    std::atomic<uint8_t> doublings{0};
    std::atomic<bool> is_expected{false};
  };

  static uint32_t at(uintptr_t function, uint32_t attempt) {
    const auto hash = static_cast<uint32_t>((function * 0x9e37'79b9'7f4a'7c15u) >> 40);
    return (hash + attempt) % kRegions;
  }
  const Region* find(uintptr_t function) const {
    for (uint32_t i = 0; i < kTries; ++i) {
      const Region& region = regions_[at(function, i)];
      if (region.function.load(kRelaxed) == function) return &region;
    }
    return nullptr;
  }
  Region* find(uintptr_t function) {
    return const_cast<Region*>(static_cast<const PollingRegions*>(this)->find(function));
  }
  Region* find_or_add(uintptr_t function) {
    for (uint32_t i = 0; i < kTries; ++i) {
      Region& region = regions_[at(function, i)];
      uintptr_t there = region.function.load(kRelaxed);
      if (there == 0 && region.function.compare_exchange_strong(there, function, kRelaxed))
        there = function;
      if (there == function) return &region;
    }
    return nullptr;
  }

  std::atomic<bool> any_{false};
  Region regions_[kRegions];
};

inline constinit PollingRegions polling_regions;

}  // namespace bosk::sched
