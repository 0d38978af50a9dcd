// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// On which CPUs a kernel thread is, and may be. Without errno: for any identity, and for signal handlers.
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/syscalls.h"

namespace bosk::base {

/// CPUs that a kernel thread may use; empty where there are more than fit, or nobody needs to know.
struct CpuMask {
  static constexpr uint32_t kWords = 16;
  uint64_t words[kWords] = {};
  uint32_t bytes = 0;

  uint32_t count() const {
    uint32_t sum = 0;
    for (const uint64_t word : words) sum += static_cast<uint32_t>(__builtin_popcountll(word));
    return sum;
  }
};

inline bool same_cpus(const CpuMask& a, const CpuMask& b) {
  return memcmp(a.words, b.words, sizeof a.words) == 0;
}

constexpr uint32_t kNoCpu = UINT32_MAX;

/// Of the calling kernel thread.
inline uint32_t current_cpu() {
  unsigned cpu = kNoCpu;
  return raw_syscall(SYS_getcpu, address_of(&cpu)) == 0 ? cpu : kNoCpu;
}

/// No bytes if it cannot be told.
inline CpuMask cpus_of_calling_thread() {
  CpuMask mask;
  const long bytes =
      raw_syscall(SYS_sched_getaffinity, 0, sizeof mask.words, address_of(mask.words));
  if (bytes > 0) mask.bytes = static_cast<uint32_t>(bytes);
  return mask;
}

/// Of another one. False: there is none, or the kernel does not tell.
inline bool cpus_of_thread(int tid, CpuMask* mask) {
  *mask = {};
  const long bytes =
      raw_syscall(SYS_sched_getaffinity, tid, sizeof mask->words, address_of(mask->words));
  if (bytes > 0) mask->bytes = static_cast<uint32_t>(bytes);
  return bytes > 0;
}

/// The calling kernel thread's. False: the kernel refuses.
inline bool set_cpus(const CpuMask& mask) {
  return raw_syscall(SYS_sched_setaffinity, 0, mask.bytes, address_of(mask.words)) == 0;
}

}  // namespace bosk::base
