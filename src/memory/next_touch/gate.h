// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lock between marking and resolving, and what every holder of it does first.
#pragma once

#include <limits.h>
#include <stdint.h>

#include <atomic>

#include "base/sleeping_lock.h"
#include "base/syscalls.h"

namespace bosk::memory {

/// Many readers or one writer, in turn: a writer waits for the readers who came before it, a reader for one writer at most, also where
/// somebody marks thousands of areas one by one and others touch theirs meanwhile. Who waits sleeps. Handlers of faults are readers,
/// so holders never touch memory that may be marked.
///
/// `in_`: how many readers have come, and in its lowest bits kWriter (one has it, or waits for those who came before), kPhase
/// (which differs from one writer to the next) and kSleepers (readers sleep until that writer is gone); both only beside
/// kWriter. `out_`: how many readers have left. A reader who finds a writer has been counted already, so the next one waits
/// for him: he need not see the moment when there is none, a change of phase tells as well, and the phase cannot change
/// twice before he has left.
class SharedLock {
 public:
  void lock_shared() {
    // acquire, here and below: what the last writer did to the table and the marks is seen.
    const uint32_t found = in_.fetch_add(kReader, std::memory_order_acquire);
    if (BOSK_LIKELY((found & kWriter) == 0)) return;
    for (;;) {
      uint32_t seen = in_.load(std::memory_order_acquire);
      if ((seen & kWriter) == 0 || ((seen ^ found) & kPhase) != 0) return;
      // relaxed: it only asks to be woken. The kernel compares: who comes or goes meanwhile makes it look again.
      if ((seen & kSleepers) != 0 ||
          in_.compare_exchange_strong(seen, seen | kSleepers, std::memory_order_relaxed))
        base::futex_wait(&in_, seen | kSleepers);
    }
  }
  void unlock_shared() {
    // release: the writer that comes next sees the marks that this reader has cleared. seq_cst, as its counterparts in lock():
    // a writer that has not seen this one leave is seen here.
    out_.fetch_add(kReader, std::memory_order_seq_cst);
    if ((in_.load(std::memory_order_seq_cst) & kWriter) != 0) base::futex_wake(&out_, 1);
  }
  void lock() {
    writers_.lock();  // one at a time
    phase_ ^= kPhase;
    const uint32_t came =
        in_.fetch_add(kWriter | phase_, std::memory_order_seq_cst) & ~(kReader - 1);
    for (;;) {
      const uint32_t left = out_.load(std::memory_order_seq_cst);
      if (left == came) return;
      base::futex_wait(&out_, left);
    }
  }
  void unlock() {
    const uint32_t before = in_.fetch_and(~(kReader - 1), std::memory_order_release);
    if ((before & kSleepers) != 0) base::futex_wake(&in_, INT_MAX);
    writers_.unlock();
  }
  /// In a forked child, whose other threads are gone.
  void reset() {
    in_.store(0, std::memory_order_relaxed);
    out_.store(0, std::memory_order_relaxed);
    new_writers();
  }

 private:
  void new_writers() { __builtin_memset(static_cast<void*>(&writers_), 0, sizeof writers_); }

  static constexpr uint32_t kWriter = 1;
  static constexpr uint32_t kPhase = 2;
  static constexpr uint32_t kSleepers = 4;
  static constexpr uint32_t kReader = 8;
  std::atomic<uint32_t> in_{0};
  std::atomic<uint32_t> out_{0};
  uint32_t phase_ = 0;  ///< the last writer's; by whoever has writers_
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
