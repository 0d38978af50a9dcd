// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What workers have from the thread whose pool it is, as threads have it from those that make them: they
// are made by the factory, which somebody else may have started, with other signals blocked and elsewhere.
#include <string.h>

#include "sched/configuration.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {

static CpuMask cpus_of_calling_thread() {
  CpuMask mask;
  const long bytes =
      base::raw_syscall(SYS_sched_getaffinity, 0, sizeof mask.words, base::address_of(mask.words));
  if (bytes > 0) mask.bytes = static_cast<uint32_t>(bytes);
  return mask;
}

void note_inheritance(Pool* pool, const Thread* me) {
  pool->base_mask = base::signal_mask() & ~base::signal_bit(preemption_signal());
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

static bool note_cpu(CpuMask& mask) {
  unsigned cpu = 0;
  if (base::raw_syscall(SYS_getcpu, base::address_of(&cpu)) != 0 || cpu / 64 >= CpuMask::kWords)
    return false;
  const uint64_t bit = uint64_t{1} << cpu % 64;
  const bool is_new = (mask.words[cpu / 64] & bit) == 0;
  mask.words[cpu / 64] |= bit;
  return is_new;
}

void note_creators_cpu(Pool* pool) { note_cpu(pool->start_cpus); }

void start_apart(Pool* pool) {
  if (pool->cpus.bytes == 0 || note_cpu(pool->start_cpus)) return;
  CpuMask others = pool->cpus;
  uint64_t any = 0;
  for (uint32_t i = 0; i < CpuMask::kWords; ++i)
    any |= others.words[i] &= ~pool->start_cpus.words[i];
  if (any == 0) return;
  // The kernel moves the thread at once, and has no reason to move it back afterwards.
  base::raw_syscall(SYS_sched_setaffinity, 0, others.bytes, base::address_of(others.words));
  base::raw_syscall(SYS_sched_setaffinity, 0, pool->cpus.bytes,
                    base::address_of(pool->cpus.words));
  note_cpu(pool->start_cpus);
}

}  // namespace bosk::sched
