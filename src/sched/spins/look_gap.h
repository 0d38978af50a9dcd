// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From one look at a thread to the next: had it time for anything in between?
#pragma once

#include <stdint.h>

#include "base/cpu.h"

namespace bosk::sched {

/// A thread that two looks find in the same state need not have run an instruction in between: on emulated and overcommitted machines
/// the next tick can come before the handler of this one has returned, and whoever loses its CPU meanwhile comes back with the tick
/// waiting. So it is measured how long it takes from one tick's end to the beginning of one that waits already, looks are further apart than
/// that, and one that comes late tells nothing either.
///
/// A worker's; used by its preemption handler alone. Times are in cycles.
class LookGap {
 public:
  enum class Kind : uint8_t {
    kMeasured,  ///< the tick came for the measurement alone: once more
    kTooShort,
    kOnTime,  ///< unless this one tick took longer than usual, it has run
    kAmple,   ///< on time, and many times what ticks take: it has run
    kLate,    ///< how long it ran cannot be told
  };

  /// A look that has been asked for begins.
  Kind begin(uint64_t now) {
    const uint64_t gap = now - ended_at_;
    if (BOSK_UNLIKELY(measures_)) {
      measure(gap);
      return Kind::kMeasured;
    }
    if (gap < least_) return Kind::kTooShort;
    if (gap / 2 > asked_) return Kind::kLate;
    return gap / 16 < usual_ ? Kind::kOnTime : Kind::kAmple;
  }

  /// The look ends, and there is to be another one: in how many ns; 0: before the thread goes on. `is_first`, of some at the same thread, may
  /// measure before.
  uint64_t end(uint64_t now, bool is_first);
  /// Then, if that cannot be had: the next look comes with an ordinary tick, and is not late whenever that is.
  void leave_to_ticks();

 private:
  static constexpr uint32_t kMeasured = 7;

  void measure(uint64_t gap);

  uint64_t ended_at_ = 0;
  uint64_t asked_ = 0;            ///< from then on
  uint64_t least_ = UINT64_MAX;   ///< of gaps that are not too short
  uint64_t usual_ = 0;            ///< with nothing in between: the median
  uint64_t measured_[kMeasured];  ///< ascending
  uint32_t count_ = 0;
  bool measures_ = false;
};

}  // namespace bosk::sched
