// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CPUs this process may use. All that a flat region needs to know of the machine: no hwloc here.
#pragma once

#include <stdint.h>

#include "topology/error.h"

namespace bosk::topology {

/// A set of Linux CPU numbers. Plain data with 1,024 CPUs inside it; larger masks are on the heap.
/// Zero-initialised it is the empty set. Not copyable by `=` once loaded: pass it by reference.
struct ProcessCpus {
  static constexpr uint32_t kInlineCpus = 1024;
  static constexpr uint32_t kNoCpu = UINT32_MAX;

  uint32_t count = 0;    ///< CPUs in the set
  uint32_t n_words = 0;  ///< 64-bit words in use, at least one once loaded
  uint64_t inline_words[kInlineCpus / 64] = {};
  uint64_t* heap_words = nullptr;

  const uint64_t* words() const { return heap_words != nullptr ? heap_words : inline_words; }

  /// Is Linux CPU `cpu` in the set? Any number may be asked for. O(1).
  bool contains(uint32_t cpu) const {
    const uint32_t word = cpu / 64;
    return word < n_words && ((words()[word] >> (cpu % 64)) & 1) != 0;
  }

  /// The first CPU of the set that is >= `from`, or kNoCpu. Walk the set with
  /// `for (c = set.next(0); c != kNoCpu; c = set.next(c + 1))`.
  uint32_t next(uint32_t from) const;
};

/// Reads the affinity mask of the **calling kernel thread** (which Linux has already cut down to the
/// cpuset), growing the buffer until the kernel is content, so more than 1,024 CPUs are fine. Costs one
/// system call. Call it before anything binds that thread: a bound worker sees only its own CPU.
/// False: the kernel refused or memory ran out; `error` says so and `cpus` is empty.
/// `cpus` must be empty (fresh or freed). Leaves errno as it was. Thread-safe.
bool load_process_cpus(ProcessCpus* cpus, Error* error);

/// Makes the set hold the given CPU numbers (for tests, for tools, and for captured machines). Numbers
/// >= kMaxOsIndex are refused. False: out of memory or a number too large; `cpus` is empty, as it must
/// be before.
bool set_process_cpus(ProcessCpus* cpus, const uint32_t* numbers, uint32_t n, Error* error);

/// Gives back what load or set allocated; the set is then empty. Harmless when called twice.
void free_process_cpus(ProcessCpus* cpus);

/// Largest CPU or NUMA node number that is accepted from any source, plus one. Linux stops at 8,192
/// CPUs; the bound keeps the number-to-PU table small whatever a file says.
constexpr uint32_t kMaxOsIndex = 1u << 16;

}  // namespace bosk::topology
