// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The processor time of a kernel thread of the process, by its number: neither /proc nor a descriptor.
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/syscalls.h"

namespace bosk::sched {

inline clockid_t thread_clock(int tid) {
  constexpr int kThreadSchedClock = 6;
  return static_cast<clockid_t>((~static_cast<uint32_t>(tid) << 3) | kThreadSchedClock);
}

/// In ns; UINT64_MAX: there is no such thread.
inline uint64_t thread_clock_now(int tid) {
  timespec t{};
  if (base::raw_syscall(SYS_clock_gettime, thread_clock(tid), base::address_of(&t)) != 0)
    return UINT64_MAX;
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

/// Does it run? One that runs gets on between two looks, some .5 us apart.
inline bool runs_now(int tid) {
  const uint64_t before = thread_clock_now(tid);
  return before != UINT64_MAX && thread_clock_now(tid) != before;
}

}  // namespace bosk::sched
