// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Joining a team: the count of members that have not finished, and its suspended opener.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// Members of a team that have not finished, the opener's own among them, and whether the opener is
/// suspended until they have. Each worker subtracts what it ran in one batch.
///
/// One word {suspended:1, count:31}. The opener's context belongs to whoever takes the suspended bit
/// away, or finds the count at zero with the bit set: that is one of the last to finish, the opener's
/// worker after the switch, or somebody who wants the opener to do something else (pull()).
template <class A>
class JoinCount {
 public:
  /// Opener, before ClaimWord::open(), which publishes it.
  void open(uint32_t members) { word_.store(members, std::memory_order_relaxed); }

  /// `batch` members have ended on the calling worker. True: they were the last, and the opener is
  /// suspended: the caller makes it ready.
  bool finish(uint32_t batch) {
    // release: what the members did is visible to the last; acquire: the last sees what all did, and
    // may then write the object's fields again.
    return word_.fetch_sub(batch, std::memory_order_acq_rel) == (kSuspended | batch);
  }

  /// On the opener's worker, after the opener has left its stack: it is suspended, and `batch` members
  /// have ended on it. True: all have; the caller makes the opener ready.
  bool suspend(uint32_t batch) {
    // seq_cst: the caller looks for work afterwards; whoever queued it looks here afterwards.
    return word_.fetch_add(kSuspended - batch, std::memory_order_seq_cst) == batch;
  }

  /// Anybody: there is something that the opener of whatever team is open now could do while it waits.
  /// True: the caller makes it ready; it suspends itself again. With a count of zero it is ready
  /// already.
  bool pull() {
    // seq_cst: see suspend().
    uint32_t seen = word_.load(std::memory_order_seq_cst);
    while (seen > kSuspended)
      // acquire: the opener's stack; nobody learns anything from this thread.
      if (word_.compare_exchange_weak(seen, seen & ~kSuspended, std::memory_order_acquire,
                                      std::memory_order_relaxed))
        return true;
    return false;
  }

  /// The opener: finish() without the dear instruction if nobody else is left; false: nothing has
  /// happened. `batch` may be 0 after it was pulled.
  bool try_last(uint32_t batch) {
    // acquire: as in finish(). Who finds its own batch alone is the only one that may still change
    // the count, so that a store is enough.
    if (word_.load(std::memory_order_acquire) != batch) return false;
    // relaxed: only the opener looks at the word before the next team is opened.
    word_.store(0, std::memory_order_relaxed);
    return true;
  }

  /// The opener: all have finished, and what they did is visible.
  bool done() const { return (word_.load(std::memory_order_acquire) & ~kSuspended) == 0; }

 private:
  static constexpr uint32_t kSuspended = 1u << 31;

  typename A::template atomic<uint32_t> word_{0};
};

}  // namespace bosk::sched
