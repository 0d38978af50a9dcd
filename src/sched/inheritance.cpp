// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What workers have from the thread whose pool it is, as threads have it from those that make them: they
// are made by the factory, which somebody else may have started, with other signals blocked and elsewhere.
#include <string.h>

#include "context/setxid.h"
#include "sched/configuration.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {

CpuMask cpus_of_calling_thread() {
  CpuMask mask;
  const long bytes =
      base::raw_syscall(SYS_sched_getaffinity, 0, sizeof mask.words, base::address_of(mask.words));
  if (bytes > 0) mask.bytes = static_cast<uint32_t>(bytes);
  return mask;
}

void note_inheritance(Pool* pool, const Thread* me) {
  const base::KernelSigset ticks = base::signal_bit(context::signal_of_ticks());
  const base::KernelSigset mask = base::signal_mask();
  // glibc leaves it open, but who started the process may not have.
  if ((mask & ticks) != 0) base::set_signal_mask(mask & ~ticks);
  pool->base_mask = mask & ~ticks;
  pool->cpus = {};
  pool->worker_limit = configuration().worker_limit;
  if (me->own->bound_place != 0) return;  // its members are bound to places of their own
  pool->cpus = cpus_of_calling_thread();
  if (!configuration().limit_follows_cpus || pool->cpus.bytes == 0) return;
  uint32_t count = 0;
  for (const uint64_t word : pool->cpus.words)
    count += static_cast<uint32_t>(__builtin_popcountll(word));
  pool->worker_limit = count;
}

void take_cpus(const CpuMask& wanted) {
  if (wanted.bytes == 0) return;
  const CpuMask has = cpus_of_calling_thread();
  if (memcmp(has.words, wanted.words, sizeof has.words) != 0)
    base::raw_syscall(SYS_sched_setaffinity, 0, wanted.bytes, base::address_of(wanted.words));
}

}  // namespace bosk::sched
