// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the monitor has seen of a kernel thread that is blocked in a system call.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::context {

/// Written by the monitor, read by the tick that it then sends, or by another that comes between, which clears it:
/// a later call at the same place may have another number. The number goes first and comes back last: who finds it
/// the same before and after what is between has read one note, or one whose place is not where he stands, which he
/// compares.
struct CallNote {
  std::atomic<long> number{-1};  ///< -1: nothing is noted
  std::atomic<uintptr_t> stack{0};
  std::atomic<uintptr_t> place{0};  ///< program counter, after the call
  std::atomic<uint64_t> since{0};   ///< CLOCK_MONOTONIC, ns
  /// Of a sleep that has what is left written over how long it is: how long, ns; 0: it is another call, or unknown.
  std::atomic<uint64_t> asked{0};

  void clear() { number.store(-1, std::memory_order_release); }
  void write(long call, uintptr_t sp, uintptr_t pc, uint64_t from, uint64_t asked_ns) {
    number.store(-1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    stack.store(sp, std::memory_order_relaxed);
    place.store(pc, std::memory_order_relaxed);
    since.store(from, std::memory_order_relaxed);
    asked.store(asked_ns, std::memory_order_relaxed);
    number.store(call, std::memory_order_release);
  }
  /// The number if it is of a call at that place; -1: it is not.
  long read(uintptr_t sp, uintptr_t pc, uint64_t* from, uint64_t* asked_ns) const {
    const long call = number.load(std::memory_order_acquire);
    if (call < 0 || stack.load(std::memory_order_relaxed) != sp ||
        place.load(std::memory_order_relaxed) != pc)
      return -1;
    *from = since.load(std::memory_order_relaxed);
    *asked_ns = asked.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    return number.load(std::memory_order_relaxed) == call ? call : -1;
  }
};

}  // namespace bosk::context
