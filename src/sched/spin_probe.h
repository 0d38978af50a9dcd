// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does a thread wait in a loop of the program's own? Whoever waits for its flag may be behind it.
#pragma once

#include <stdint.h>

namespace bosk::sched {

struct Thread;

/// A thread that computes is never twice at the same instruction with the same values in all registers;
/// one that polls a flag is, within a few looks some microseconds apart. So a thread that two ticks in a
/// row find at about the same place is looked at again, up to kLooks times, before the tick does anything.
/// Threads that turned out to compute are left in peace for more and more ticks.
///
/// A worker's; used by its preemption handler alone.
class SpinProbe {
 public:
  enum class Verdict : uint8_t { kComputes, kSpins, kLookAgain };

  static constexpr uint32_t kLooks = 4;
  static constexpr uint64_t kBetweenLooksNs = 30'000;

  /// A look at `thread`, which the tick interrupted at `pc` in `state` (a digest of its registers, the
  /// program counter among them). kLookAgain: the caller comes back after kBetweenLooksNs, and the
  /// thread goes on until then.
  Verdict look(Thread* thread, uintptr_t pc, uint64_t state);

 private:
  Thread* thread_ = nullptr;  ///< under observation
  uint32_t looks_ = 0;
  uint64_t seen_[kLooks] = {};
};

}  // namespace bosk::sched
