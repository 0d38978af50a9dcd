// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An affinity mask that a worker gives its own kernel thread for a moment, to get to other CPUs, can be told from one that the
// program has given it, however long the worker is without a CPU in that moment.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu_mask.h"

namespace bosk::sched {

/// Has somebody given a kernel thread other CPUs than were its own? kUnknown: it moved all the time.
enum class Bound : uint8_t { kNo, kYes, kUnknown };

/// Not 0.
inline uint32_t digest_of(const base::CpuMask& mask) {
  uint64_t sum = 0;
  for (const uint64_t word : mask.words) sum = (sum ^ word) * 0x9E3779B97F4A7C15;
  return static_cast<uint32_t>(sum >> 32) | 1;
}

/// Of one kernel thread.
///
///   the thread itself                     who wants to know
///
///   word = count + 1, digest (release)    before = word (acquire)
///   the kernel: mask = target             mask?
///   the kernel: mask = own                after = word (relaxed)
///   word = count + 1, 0 (release)
///
/// A mask that is neither the own one nor what the word told before or after is the program's, if the word has not changed. For who sees
/// the target sees the first store afterwards, or a later one: the kernel's lock of the mask orders what is done before it is written with
/// what is done after it is read. And who sees a store sees no mask of moves before it.
template <class A>
class BriefMask {
 public:
  /// By the thread itself, whose mask is the own one. Not 0.
  void begin(uint32_t digest) { word_.store(next_count() | digest, std::memory_order_release); }
  void end() {
    word_.store(word_.load(std::memory_order_relaxed) & kCount, std::memory_order_release);
  }

  /// look(): the digest of the thread's mask now; 0: it is the own one, or there is none.
  template <class Look>
  Bound is_bound(const Look& look) const {
    constexpr int kMostTries = 100;
    for (int i = 0; i < kMostTries; ++i) {
      const uint64_t before = word_.load(std::memory_order_acquire);
      const uint32_t digest = look();
      const uint64_t after = word_.load(std::memory_order_relaxed);
      if (digest == 0 || digest == digest_in(before) || digest == digest_in(after))
        return Bound::kNo;
      if (before == after) return Bound::kYes;
      A::relax();
    }
    return Bound::kUnknown;
  }

 private:
  static constexpr uint64_t kCount = ~uint64_t{UINT32_MAX};
  static uint32_t digest_in(uint64_t word) { return static_cast<uint32_t>(word); }
  uint64_t next_count() const {
    return (word_.load(std::memory_order_relaxed) & kCount) + (uint64_t{1} << 32);
  }

  typename A::template atomic<uint64_t> word_{0};
};

}  // namespace bosk::sched
