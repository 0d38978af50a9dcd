// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The atomics that production code gives to the lock-free protocols. Tests give them the checker's
// instead (tests/model/checker/atomics.h, same interface), so that both run the same protocol.
#pragma once

#include <errno.h>
#include <linux/membarrier.h>
#include <stdint.h>
#include <time.h>

#include <atomic>

#include "base/cpu.h"
#include "base/message.h"
#include "base/syscalls.h"

namespace bosk::base {

/// Whether heavy barriers are the kernel's. Unknown, then one of the others; from kKernel it may go on to kFences, by way of
/// kChanging (use_fences()). A light barrier that is a fence is right beside either kind of heavy barrier; one that is none only
/// beside the kernel's.
enum class Membarrier : uint32_t { kUnknown, kKernel, kChanging, kFences };
inline constinit std::atomic<Membarrier> membarrier_state{Membarrier::kUnknown};

struct StdAtomics {
  template <class T>
  using atomic = std::atomic<T>;
  /// Data that a protocol orders; the checker looks for races on it.
  template <class T>
  using plain = T;

  static void fence(std::memory_order order) { std::atomic_thread_fence(order); }

  /// One turn of a loop that waits, without a bound, for another thread.
  static void pause() { cpu_pause(); }
  /// The same, where that thread may have lost its CPU: lets it run, every so manieth turn.
  static void pause_for_holder(uint32_t turn) {
    cpu_pause();
    if (turn % 256 == 255) raw_syscall(SYS_sched_yield);
  }
  /// One turn of a loop that gives up after some turns (the checker must not wait in those).
  static void relax() { cpu_pause(); }

  // ---- the asymmetric fence pair: of a light and a heavy barrier, each after a store and before a
  // load, at least one load sees the other thread's store. Two light ones promise nothing.

  /// Asks the kernel once; call it before there are workers, because the answer takes the kernel
  /// milliseconds in a process that has several threads and has not registered before. Until then light barriers are fences.
  static bool prepare_barriers() {
    Membarrier state = membarrier_state.load(std::memory_order_relaxed);
    if (state != Membarrier::kUnknown) return state != Membarrier::kFences;
    const bool works =
        raw_syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
        raw_syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
    // The first answer stands. relaxed: nothing is published with it; a light barrier that still
    // reads kUnknown is a fence, which is right beside either kind of heavy barrier.
    if (!membarrier_state.compare_exchange_strong(
            state, works ? Membarrier::kKernel : Membarrier::kFences, std::memory_order_relaxed))
      return state != Membarrier::kFences;
    return works;
  }

  /// For the hot side. Where the kernel puts a fence into this thread whenever another one asks for
  /// it, it is enough that the compiler keeps the order.
  static void light_barrier() {
    // What comes before stays before the look at the state: see use_fences().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (BOSK_LIKELY(membarrier_state.load(std::memory_order_relaxed) == Membarrier::kKernel))
      std::atomic_signal_fence(std::memory_order_seq_cst);
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  /// For the rare side: one system call, which interrupts every PU that runs this process.
  static void heavy_barrier() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!prepare_barriers()) return;
    if (raw_syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    // A forked child may have to ask again. If that is refused (a sandbox that came later), light
    // barriers elsewhere may already have relied on the kernel: going on could lose a wake-up.
    const long again = raw_syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    if (again != 0 || raw_syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
      die(1,
          "membarrier(2) worked at the start and is refused now (error %d); allow it in the "
          "process's sandbox",
          static_cast<int>(-again));
  }

  /// From now on light barriers are fences, some 20 ns each, and heavy ones, too: for processes whose threads go to sleep and are
  /// woken at every turn, because they are more than the CPUs.
  ///
  /// Who makes a light barrier stores, then reads the state, then loads. Let it have read kKernel, so that nothing orders its
  /// store before its load. The kernel's barrier below comes after the state was changed: if it comes after that read, the store
  /// is out before any heavy barrier that is a mere fence, whose load then sees it; if it came before, the read had seen the change.
  static void use_fences() {
    Membarrier state = Membarrier::kKernel;
    if (!membarrier_state.compare_exchange_strong(state, Membarrier::kChanging)) return;
    heavy_barrier();
    membarrier_state.store(Membarrier::kFences, std::memory_order_seq_cst);
  }

  /// Sleeps while `*word == expected`; may return for no reason. False: the time ran out.
  static bool futex_wait(const std::atomic<uint32_t>* word, uint32_t expected,
                         const timespec* timeout = nullptr) {
    return base::futex_wait(word, expected, timeout) != -ETIMEDOUT;
  }
  static void futex_wake(const std::atomic<uint32_t>* word, int count) {
    base::futex_wake(word, count);
  }
};

}  // namespace bosk::base
