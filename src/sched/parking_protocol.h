// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Going to sleep without losing a wake-up: one owner sleeps, any number of threads wake it.
#pragma once

#include <stdint.h>
#include <time.h>

#include <atomic>

namespace bosk::sched {

/// Owner:                                  Waker:
///
///   spot.prepare();                         publish work (a release store)
///   if (there is work) spot.cancel();       if (spot.needs_wake()) spot.wake();
///   else               spot.sleep();
///   look for work again
///
/// Why no wake-up is lost. The owner stores "asleep", passes a heavy barrier and looks for work; a
/// waker stores work, passes a light barrier and looks for "asleep". Of two threads that each store,
/// pass their half of the asymmetric pair and then load, at least one sees the other's store. So
/// either the owner finds the work, or the waker finds "asleep". In the second case the waker's
/// exchange takes the word away from "asleep" before it wakes: the kernel then either finds another
/// value and does not put the owner to sleep, or has it queued when the waker comes.
///
/// A waker that finds "awake" relies on whoever stored that. If it was the owner, it looks for work
/// before it sleeps again. If it was another waker, that one wakes the owner, which looks again.
///
/// The price is paid by who has nothing better to do: prepare() is a system call, needs_wake() one
/// load. A waker may come late and end the owner's *next* sleep: the owner must be ready to find
/// nothing. The spot must outlive its wakers (workers are never freed).
template <class A>
class ParkingSpot {
 public:
  /// Owner: from here on wakers see that it sleeps.
  void prepare() {
    // relaxed: the barrier orders it before the owner's look for work.
    state_.store(kAsleep, std::memory_order_relaxed);
    A::heavy_barrier();
  }

  /// Owner, instead of sleep(): it found work.
  void cancel() {
    // relaxed: says nothing but "do not bother"; a waker that misses it makes one idle system call.
    state_.store(kAwake, std::memory_order_relaxed);
  }

  /// Owner: sleeps until a waker has come, or the time is over. True if a waker came; then all that
  /// the waker did before wake() is visible. With a time limit the kernel may also return early.
  bool sleep(const timespec* timeout = nullptr) {
    // acquire: pairs with the release in wake().
    while (state_.load(std::memory_order_acquire) == kAsleep) {
      A::futex_wait(&state_, kAsleep, timeout);
      if (timeout == nullptr) continue;
      if (state_.load(std::memory_order_acquire) != kAsleep) break;
      cancel();
      return false;
    }
    return true;
  }

  /// Waker, after publishing: true if the owner sleeps or is about to.
  bool needs_wake() const {
    A::light_barrier();
    // relaxed: the barrier orders it after the publication.
    return state_.load(std::memory_order_relaxed) == kAsleep;
  }

  /// Waker. Of several, one makes the system call.
  void wake() {
    // release: what the waker published is visible to the owner that reads this value. Not acquire:
    // the waker reads nothing of the owner's.
    if (state_.exchange(kAwake, std::memory_order_release) == kAsleep) A::futex_wake(&state_, 1);
  }

 private:
  static constexpr uint32_t kAwake = 0;
  static constexpr uint32_t kAsleep = 1;
  typename A::template atomic<uint32_t> state_{kAwake};
};

}  // namespace bosk::sched
