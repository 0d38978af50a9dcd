// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that run a team's queued work after their own member of it has ended.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// One word in the bubble: 0 while nobody may help, else one for the region and one per helper. A
/// helper may come with a stale pointer (bubbles are type-stable): while it holds its unit the bubble
/// cannot be recycled, so it joins first and looks at the bubble then.
///
/// Why the orders are enough. open() is called by a running member, after the team's fields were
/// written; join() acquires it, directly or through other helpers' exchanges, which continue its
/// release sequence. close() is called by the opener when all members have ended; leave() releases
/// what the helper did and read, and the opener acquires it in left() before it writes the
/// bubble again. The word reaches 0 once: members open only while the region's unit is missing, and
/// when the opener takes that away no member is left.
template <class A>
class HelperCount {
 public:
  /// A running member: from now on helpers may come. Cheap when they may already.
  void open() {
    if (count_.load(std::memory_order_relaxed) != 0) return;
    uint32_t closed = 0;
    // Another member may do the same; one of them is enough.
    count_.compare_exchange_strong(closed, 1, std::memory_order_release, std::memory_order_relaxed);
  }

  /// Anybody: takes a unit of the region that is open now, if one is.
  bool join() {
    uint32_t seen = count_.load(std::memory_order_relaxed);
    while (seen != 0)
      if (count_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        return true;
    return false;
  }

  /// A helper gives its unit back. True: the opener waits, wake it.
  bool leave() {
    // seq_cst: the wake-up that follows relies on a full fence.
    return count_.fetch_sub(1, std::memory_order_seq_cst) == 1;
  }

  /// The opener, when all members have ended and with them all work. Helpers that are left, and those
  /// that still join while there are any, find none; the opener waits until left() is 0.
  void close() { count_.fetch_sub(1, std::memory_order_relaxed); }

  uint32_t left() const { return count_.load(std::memory_order_acquire); }

  /// A hint, and for the opener after the join the truth: has it been opened?
  bool is_open() const { return count_.load(std::memory_order_relaxed) != 0; }

  /// To block on while left() != 0.
  const typename A::template atomic<uint32_t>& word() const { return count_; }

 private:
  typename A::template atomic<uint32_t> count_{0};
};

}  // namespace bosk::sched
