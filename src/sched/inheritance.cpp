// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What workers have from the thread whose pool it is, as threads have it from those that make them: they
// are made by the factory, which somebody else may have started, with other signals blocked and elsewhere.
#include "context/setxid.h"
#include "sched/configuration.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {

void note_inheritance(Pool* pool, const Thread* me) {
  const base::KernelSigset ticks = base::signal_bit(context::signal_of_ticks());
  const base::KernelSigset mask = base::signal_mask();
  // glibc leaves it open, but who started the process may not have.
  if ((mask & ticks) != 0) base::set_signal_mask(mask & ~ticks);
  pool->base_mask = mask & ~ticks;
  pool->cpus = {};
  pool->worker_limit = configuration().worker_limit;
  if (me->own->bound_place != 0) return;  // its members are bound to places of their own
  pool->cpus = base::cpus_of_calling_thread();
  if (!configuration().limit_follows_cpus || pool->cpus.bytes == 0) return;
  pool->worker_limit = pool->cpus.count();
}

void take_cpus(const base::CpuMask& wanted) {
  if (wanted.bytes == 0) return;
  if (!base::same_cpus(base::cpus_of_calling_thread(), wanted)) base::set_cpus(wanted);
}

}  // namespace bosk::sched
