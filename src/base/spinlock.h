// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A lock for a few instructions; hold it only with preemption off and call nothing that can block.
#pragma once

#include <sched.h>

#include <atomic>

#include "base/cpu.h"
#include "base/syscalls.h"

namespace bosk::base {

class SpinLock {
 public:
  void lock() {
    // acquire pairs with the release in unlock(): the holder sees what the last one wrote.
    if (BOSK_LIKELY(!held_.exchange(true, std::memory_order_acquire))) return;
    lock_contended();
  }
  bool try_lock() {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  void lock_contended() {
    do {
      for (int spins = 0; held_.load(std::memory_order_relaxed); ++spins) {
        cpu_pause();
        // The holder's kernel thread may have lost its CPU: let it run.
        if (spins > 200) {
          raw_syscall(SYS_sched_yield);
          spins = 0;
        }
      }
    } while (held_.exchange(true, std::memory_order_acquire));
  }
  std::atomic<bool> held_{false};
};

class SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~SpinGuard() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace bosk::base
