// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether spinning can help: asked once.
#include "omp/brief_spin.h"

#include <sys/syscall.h>

#include <atomic>

#include "base/cpu.h"
#include "base/syscalls.h"

namespace bosk::omp {

bool spinning_can_help() {
  // 0: not asked yet, 1: one CPU, 2: more. Racing first callers store the same answer, and nothing
  // else is published with it: relaxed.
  static constinit std::atomic<int> answer{0};
  const int known = answer.load(std::memory_order_relaxed);
  if (BOSK_LIKELY(known != 0)) return known == 2;
  // A mask too large for the buffer is one of a machine with many CPUs.
  unsigned long mask[128] = {};
  const long bytes =
      base::raw_syscall(SYS_sched_getaffinity, 0, sizeof mask, base::address_of(mask));
  int cpus = bytes < 0 ? 2 : 0;
  for (unsigned long word : mask) cpus += __builtin_popcountl(word);
  answer.store(cpus > 1 ? 2 : 1, std::memory_order_relaxed);
  return cpus > 1;
}

}  // namespace bosk::omp
