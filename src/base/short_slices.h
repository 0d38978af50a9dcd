// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel threads of the runtime's own that run for some microseconds when they are called, and that others wait for.
#pragma once

#include <sched.h>
#include <stdint.h>

#include "base/syscalls.h"

namespace bosk::base {

/// Asks the kernel for a slice of the calling thread's as short as its work: it is then not put behind threads that compute, whose slices
/// are of milliseconds. Its share of the CPU, policy and niceness stay. Linux before 6.12 does not know it, and goes on as before.
inline void ask_for_short_slices() {
  constexpr uint64_t kShortestNs = 100'000;  // for the kernel
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  constexpr long kSize = sizeof attributes;
  if (raw_syscall(SYS_sched_getattr, 0, address_of(&attributes), kSize, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH) return;
  attributes.runtime = kShortestNs;
  raw_syscall(SYS_sched_setattr, 0, address_of(&attributes), 0);
}

}  // namespace bosk::base
