// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The shared words of a barrier whose arrivals come in batches (sched/barrier.cpp says from whom).
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// Owned by the team: any member may arrive, the one who completes the count opens.
///
/// Why the orders are enough. A member's writes before the barrier reach everybody after it along
/// arrive() (acq_rel: the adds form one release sequence, the last adder has acquired all) and the
/// epoch (stored with release by the last adder, read with acquire by the others). The plain reset of
/// the count is safe because nobody adds again before having seen the new epoch, which is stored
/// after it.
template <class A>
class BarrierWord {
 public:
  /// Before the members start.
  void reset() {
    arrived_.store(0, std::memory_order_relaxed);
    epoch_.store(0, std::memory_order_relaxed);
  }

  /// The number of the barrier that comes next; stable for a member until it has arrived.
  uint32_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

  /// Adds `count` arrivals to barrier number `epoch`. True: they were the last of `size`, and the
  /// barrier is open now.
  bool arrive(uint32_t count, uint32_t size, uint32_t epoch) {
    if (arrived_.fetch_add(count, std::memory_order_acq_rel) + count != size) return false;
    arrived_.store(0, std::memory_order_relaxed);
    epoch_.store(epoch + 1, std::memory_order_release);
    return true;
  }

  bool is_open(uint32_t epoch) const { return epoch_.load(std::memory_order_acquire) != epoch; }

 private:
  typename A::template atomic<uint32_t> arrived_{0};
  typename A::template atomic<uint32_t> epoch_{0};
};

}  // namespace bosk::sched
