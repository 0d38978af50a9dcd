// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread that is switched out waits for: looked at by its worker at every scheduling point, and now and then by a stranger.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// Set while the thread waits, by itself; cleared by whoever plays the worker, who alone lets it go on.
///
/// What the test reads is the waiter's, on its stack perhaps, and gone when the wait is over. The worker reads it while the waiter cannot run.
/// A stranger, of whom there is one at a time, says first where it looks:
///
///   stranger                               waiter
///
///   at = condition                         test = null
///   heavy barrier                          light barrier
///   read test; if there is one, call it    while (at == condition) wait
///   at = null (release)                    (acquire)
///
/// Of two that each store, pass their half of the barrier and then load, one sees the other's store: so either the stranger finds no test, or
/// that of a later wait, for which the same holds; or the waiter waits until it has read all that it wants to.
template <class A, class Waiter>
class WaitCondition;

/// Where a stranger looks.
template <class A>
class StrangerLook {
 public:
  /// By the stranger. False: nobody waits, or it does not hold.
  template <class Waiter>
  bool holds(const WaitCondition<A, Waiter>& condition, Waiter* waiter) {
    if (!condition.is_set()) return false;
    // relaxed: the barrier orders it before the look.
    at_.store(&condition, std::memory_order_relaxed);
    A::heavy_barrier();
    const bool result = condition.holds(waiter);
    // release pairs with the acquire in wait_until_gone(): what was read is read.
    at_.store(nullptr, std::memory_order_release);
    return result;
  }

 private:
  template <class, class>
  friend class WaitCondition;

  void wait_until_gone(const void* condition) const {
    A::light_barrier();
    for (uint32_t turn = 0; at_.load(std::memory_order_acquire) == condition; ++turn)
      A::pause_for_holder(turn);
  }

  typename A::template atomic<const void*> at_{nullptr};
};

template <class A, class Waiter>
class WaitCondition {
 public:
  using Test = bool (*)(Waiter*);

  bool is_set() const { return test_.load(std::memory_order_relaxed) != nullptr; }
  bool holds(Waiter* waiter) const {
    // acquire pairs with the release in set(): what the test reads was written before.
    const Test test = test_.load(std::memory_order_acquire);
    return test != nullptr && test(waiter);
  }
  void set(Test test) { test_.store(test, std::memory_order_release); }
  /// The waiter goes on, or looks for itself.
  void clear() { test_.store(nullptr, std::memory_order_relaxed); }
  /// By the waiter, before anything changes that the test reads.
  void end(const StrangerLook<A>& look) {
    clear();
    look.wait_until_gone(this);
  }

 private:
  typename A::template atomic<Test> test_{nullptr};
};

}  // namespace bosk::sched
