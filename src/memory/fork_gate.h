// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forks wait until no thread is inside a library that knows nothing of forks: what the child gets of it is whole.
#pragma once

#include <limits.h>
#include <stdint.h>

#include <atomic>

namespace bosk::memory {

/// A thread's mark says whether it is inside; it alone writes to it.
///
///   thread                                   who forks
///
///   mark = 1                                 closed = 1
///   light barrier                            heavy barrier
///   if (closed) mark = 0, wait, once more    wait until all marks are 0 (acquire)
///   …                                        …
///   mark = 0 (release)                       closed = 0 (release), wake
///
/// Of two that each store, pass their half of the barrier and then load, one sees the other's store: so either who forks sees the mark, and
/// what was done inside when it is gone; or the thread sees that the gate is closed, and has not begun.
template <class A>
class ForkGate {
 public:
  using Mark = typename A::template atomic<uint32_t>;

  /// True: it was inside already (a function that the library calls has come back to us), and stays there after its leave().
  bool enter(Mark& mine) {
    if (mine.load(std::memory_order_relaxed) != 0) return true;
    for (;;) {
      mine.store(1, std::memory_order_relaxed);
      A::light_barrier();
      // acquire: what the fork wrote is seen, as if it had held a lock.
      if (closed_.load(std::memory_order_acquire) == 0) return false;
      // release: it may be this store that who forks reads, and what was done inside before counts.
      mine.store(0, std::memory_order_release);
      A::futex_wait(&closed_, 1);
    }
  }
  void leave(Mark& mine, bool stays) {
    if (!stays) mine.store(0, std::memory_order_release);
  }

  /// One at a time. Then wait_for() everybody but the caller.
  void close() {
    closed_.store(1, std::memory_order_relaxed);
    A::heavy_barrier();
  }
  static void wait_for(const Mark& mark) {
    for (uint32_t turn = 0; mark.load(std::memory_order_acquire) != 0; ++turn)
      A::pause_for_holder(turn);
  }
  void open() {
    closed_.store(0, std::memory_order_release);
    A::futex_wake(&closed_, INT_MAX);
  }

 private:
  typename A::template atomic<uint32_t> closed_{0};
};

}  // namespace bosk::memory
