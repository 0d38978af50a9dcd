// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How often a thief comes back for tasks that are hardly worth the way.
#pragma once

#include <stdint.h>

namespace bosk::omp {

/// A stolen task costs both sides some cache lines' way from one processor to the other: the queue's, the
/// task's, its data's, and back when its memory goes home. Where a task is done in less time than that, a
/// thief only holds up the one who creates them (on two CPUs, 74 ns a task instead of 17). So a thief
/// looks how long each of what it stole took to run, and if that is less than what the way costs, it waits
/// before it comes again, longer each time.
///
/// A thread's own; times in base::cycles().
class StealPace {
 public:
  StealPace() = default;
  explicit StealPace(uint64_t cycles_per_microsecond)
      : least_worth_(cycles_per_microsecond * kLeastWorthNs / 1000),
        first_pause_(cycles_per_microsecond * kFirstPauseUs),
        patience_(cycles_per_microsecond * kPatienceUs) {}

  /// It took `price` to steal one task; at `now` it has that and perhaps more of the same kind.
  /// `foreign`: so many tasks of other threads it has run so far.
  void stole(uint64_t price, uint64_t now, uint64_t foreign) {
    stolen_at_ = now;
    price_ = price;
    foreign_ = foreign;
  }

  /// Stolen tasks have been run since, and those that they released: at the next look for some.
  bool has_to_judge() const { return stolen_at_ != 0; }

  /// What it stole has been run; `foreign` as above. Tasks that these created are part of them.
  void judge(uint64_t now, uint64_t foreign) {
    const uint64_t run = foreign - foreign_;
    const uint64_t each = (now - stolen_at_) / (run != 0 ? run : 1);
    stolen_at_ = 0;
    if (each >= least_worth_ && each >= price_) {
      pause_ = 0;
      return;
    }
    pause_ = pause_ == 0 ? first_pause_ : pause_ < kMostPauses * first_pause_ ? 2 * pause_ : pause_;
    until_ = now + pause_;
  }

  /// Nothing was to be had. True: there may soon be something again, and to say that there is not, which
  /// interrupts everybody, would be early.
  bool is_patient(uint64_t now) {
    if (dry_since_ == 0) dry_since_ = now;
    if (now - dry_since_ < patience_) return true;
    dry_since_ = 0;
    return false;
  }
  void found() { dry_since_ = 0; }

  bool pauses() const { return pause_ != 0; }
  bool is_over(uint64_t now) const { return now >= until_; }

 private:
  /// A task and its memory come in some 50 ns and go in as many, on one socket; what is farther away
  /// shows in the price.
  static constexpr uint64_t kLeastWorthNs = 110;
  static constexpr uint64_t kFirstPauseUs = 2;
  static constexpr uint64_t kMostPauses = 16;
  static constexpr uint64_t kPatienceUs = 6;

  uint64_t least_worth_ = 0;
  uint64_t first_pause_ = 0;
  uint64_t stolen_at_ = 0;  ///< 0: nothing to judge
  uint64_t price_ = 0;
  uint64_t foreign_ = 0;
  uint64_t pause_ = 0;
  uint64_t until_ = 0;
  uint64_t patience_ = 0;
  uint64_t dry_since_ = 0;  ///< 0: it found something when it looked last
};

}  // namespace bosk::omp
