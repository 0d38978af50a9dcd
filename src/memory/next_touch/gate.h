// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lock between marking and resolving, and what every holder of it does first.
#pragma once

#include <limits.h>
#include <stdint.h>

#include <atomic>

#include "base/sleeping_lock.h"
#include "base/syscalls.h"

namespace bosk::memory {

/// Many readers or one writer; who waits sleeps. A writer that waits keeps new readers out. Handlers of
/// faults are readers, so holders never touch memory that may be marked.
///
/// The word: kWriter: one has it or waits for the last readers; kSleepers, only beside it: readers sleep until it is gone; and
/// how many readers are in. Who changes it is seen by who is about to sleep: the kernel compares.
class SharedLock {
 public:
  void lock_shared() {
    for (;;) {
      uint32_t seen = word_.load(std::memory_order_relaxed);
      while ((seen & kWriter) == 0)
        // acquire: what the last writer did to the table and the marks is seen.
        if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire,
                                        std::memory_order_relaxed))
          return;
      // relaxed: it only asks to be woken.
      if ((seen & kSleepers) != 0 ||
          word_.compare_exchange_strong(seen, seen | kSleepers, std::memory_order_relaxed))
        base::futex_wait(&word_, seen | kSleepers);
    }
  }
  void unlock_shared() {
    // release: the writer that comes next sees the marks that this reader has cleared.
    const uint32_t before = word_.fetch_sub(1, std::memory_order_release);
    if ((before & ~kSleepers) == (kWriter | 1)) base::futex_wake(&word_, INT_MAX);
  }
  void lock() {
    writers_.lock();  // one at a time: the word has room for one
    // acquire in both: see unlock_shared().
    uint32_t seen = word_.fetch_or(kWriter, std::memory_order_acquire) | kWriter;
    while ((seen & ~kSleepers) != kWriter) {
      base::futex_wait(&word_, seen);
      seen = word_.load(std::memory_order_acquire);
    }
  }
  void unlock() {
    // No reader came in meanwhile. A mark is a handful of system calls, so none is made for nobody.
    if ((word_.exchange(0, std::memory_order_release) & kSleepers) != 0)
      base::futex_wake(&word_, INT_MAX);
    writers_.unlock();
  }
  /// In a forked child, whose other threads are gone.
  void reset() {
    word_.store(0, std::memory_order_relaxed);
    new_writers();
  }

 private:
  void new_writers() { __builtin_memset(static_cast<void*>(&writers_), 0, sizeof writers_); }

  static constexpr uint32_t kWriter = 1u << 31;
  static constexpr uint32_t kSleepers = 1u << 30;
  std::atomic<uint32_t> word_{0};
  base::SleepingLock writers_;
};

/// No signal while this lives. A holder of our locks must not be preempted (its worker could then run a
/// thread that waits for them in a handler, which cannot be switched away from), nor run a handler of
/// the program's, which may touch marked memory.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    const base::KernelSigset all = ~base::KernelSigset{0};
    base::raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, base::address_of(&all),
                      base::address_of(&before_), sizeof all);
  }
  ~SignalsBlocked() {
    if (!leave_blocked_) base::set_signal_mask(before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  base::KernelSigset before() const { return before_; }
  /// But those that cannot be, SIGKILL and SIGSTOP, and the two of the C library's, which sigfillset() leaves out.
  bool all_were_blocked() const {
    const base::KernelSigset never = base::signal_bit(SIGKILL) | base::signal_bit(SIGSTOP) |
                                     base::signal_bit(32) | base::signal_bit(33);
    return (before_ | never) == ~base::KernelSigset{0};
  }
  /// Who blocked them before gives them free.
  void leave_blocked() { leave_blocked_ = true; }

 private:
  bool leave_blocked_ = false;
  base::KernelSigset before_ = 0;
};

}  // namespace bosk::memory
