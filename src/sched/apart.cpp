// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers on CPUs of their own, although nobody is bound.
//
// The kernel likes to put a thread that is made or woken beside the one that does it, and takes some 20
// ms to part them while a CPU beside them is idle. In that time a region of two threads takes 30 us
// instead of .2, and one with work in it twice as long. So a worker that begins, or is woken, beside
// somebody of its pool goes elsewhere: it takes that CPU out of its affinity mask and puts it back at once.
#include "base/spare_cpus.h"
#include "sched/homes.h"
#include "sched/kernel_threads.h"
#include "sched/scheduler.h"
#include "sched/tuning.h"

namespace bosk::sched {
namespace {

/// The calling kernel thread goes to another of its CPUs. False: there is none, or nobody can tell.
bool leave_for_other(Worker* w, const base::CpuMask& avoided) {
  const base::CpuMask own = base::cpus_of_calling_thread();
  if (own.bytes == 0) return false;
  base::CpuMask others = own;
  for (uint32_t i = 0; i < base::CpuMask::kWords; ++i) others.words[i] &= ~avoided.words[i];
  return move_into(w, others, own);
}

bool note_cpu(base::CpuMask& mask, uint32_t cpu) {
  if (cpu / 64 >= base::CpuMask::kWords) return false;
  const uint64_t bit = uint64_t{1} << cpu % 64;
  const bool is_new = (mask.words[cpu / 64] & bit) == 0;
  mask.words[cpu / 64] |= bit;
  return is_new;
}

}  // namespace

bool move_into(Worker* w, const base::CpuMask& target, const base::CpuMask& own) {
  uint64_t any = 0;
  for (const uint64_t word : target.words) any |= word;
  if (any == 0) return false;
  // Of a thread that the program has bound already all masks are the program's.
  const bool is_free = base::same_cpus(own, w->pool->cpus);
  if (is_free) w->brief_mask.begin(digest_of(target));
  const bool goes = base::set_cpus(target);
  // Somebody else may have bound this thread meanwhile; then that stands.
  if (goes && base::same_cpus(base::cpus_of_calling_thread(), target)) base::set_cpus(own);
  if (is_free) w->brief_mask.end();
  return goes;
}

Bound is_bound(const Worker* w) {
  // acquire: what it was made with.
  const context::Identity* kernel = w->kernel.load(std::memory_order_acquire);
  if (kernel == nullptr) return Bound::kNo;
  return w->brief_mask.is_bound([=] {
    base::CpuMask mask;
    const bool is_own =
        !base::cpus_of_thread(kernel->tid, &mask) || base::same_cpus(mask, w->pool->cpus);
    return is_own ? 0 : digest_of(mask);
  });
}

void note_creators_cpu(Pool* pool) { note_cpu(pool->start_cpus, base::current_cpu()); }

void wait_for_start(const std::atomic<uint32_t>& state, bool may_poll) {
  constexpr uint64_t kPollUs = 300;
  if (may_poll) {
    const uint64_t begin = base::cycles();
    const uint64_t enough = kPollUs * base::cycles_per_microsecond();
    while (state.load(std::memory_order_acquire) == 0 && base::cycles() - begin < enough)
      base::raw_syscall(SYS_sched_yield);  // it may have been put beside this one
  }
  while (state.load(std::memory_order_acquire) == 0) base::futex_wait(&state, 0);
}

base::CpuMask start_apart(Pool* pool) {
  base::CpuMask target;
  if (pool->cpus.bytes == 0 || note_cpu(pool->start_cpus, base::current_cpu())) return target;
  for (uint32_t i = 0; i < base::CpuMask::kWords; ++i) {
    const uint64_t free = pool->cpus.words[i] & ~pool->start_cpus.words[i];
    if (free == 0) continue;
    target.words[i] = free & -free;
    target.bytes = pool->cpus.bytes;
    pool->start_cpus.words[i] |= target.words[i];
    break;
  }
  return target;
}

void go_apart(Worker* w, const base::CpuMask& target) {
  if (target.bytes != 0) move_into(w, target, base::cpus_of_calling_thread());
}

/// Do others want the pool's CPUs? Where they did until lately the kernel is asked, once.
static bool has_rivals(Pool* pool) {
  const uint64_t now = base::cycles();
  if (pool->rivals.are_here(now)) return true;
  if (!pool->rivals.may_have_gone(now) || base::is_a_cpu_free()) return false;
  pool->rivals.note_seen(now, base::cycles_per_microsecond());
  return true;
}

void wake_sleeper(Worker* target) {
  // Under a passive policy both sleep in turn, and one CPU serves them faster than two.
  // Where there are more threads than processors each CPU is somebody's anyway, and where others want them, too, the kernel knows better;
  // but who has a home goes there.
  Pool* pool = target->pool;
  const bool is_placed = pool->seats.load(std::memory_order_relaxed) != nullptr;
  if (pool->wake_window_cycles == 0 && !is_crowded(pool) && (is_placed || !has_rivals(pool)))
    target->woken_from.store(base::current_cpu() + 1, std::memory_order_relaxed);
  target->spot.wake();
}

/// The calling worker is not alone on this CPU.
static void leave_cpu(Worker* w, uint32_t cpu) {
  const uint64_t begin = base::cycles();
  if (w->part_again_at != 0 && static_cast<int64_t>(begin - w->part_again_at) < 0) return;
  base::CpuMask avoided;
  note_cpu(avoided, cpu);
  if (!go_home_from(w, cpu) && !leave_for_other(w, avoided)) return;
  // Late: others use that CPU, too. Better to leave it to the kernel for a while.
  const uint64_t end = base::cycles();
  const uint64_t us = base::cycles_per_microsecond();
  w->pool->rivals.note_gap(end, end - begin, us);
  if (end - begin < tuning::kLateOnCpuUs * us)
    w->part_pause_us = 0;
  else if (w->part_pause_us < tuning::kLongestStayUs)
    w->part_pause_us = w->part_pause_us == 0 ? tuning::kFirstStayUs : 2 * w->part_pause_us;
  w->part_again_at = w->part_pause_us == 0 ? 0 : end + w->part_pause_us * us;
}

void part_from_waker(Worker* w) {
  const uint32_t waker = w->woken_from.load(std::memory_order_relaxed);
  if (waker == 0) return;
  w->woken_from.store(0, std::memory_order_relaxed);
  if (base::current_cpu() == waker - 1) leave_cpu(w, waker - 1);
}

void part_from_busy_neighbours(Worker* w) {
  if (is_crowded(w->pool)) return;
  const uint32_t cpu = base::current_cpu();
  const uint64_t now = base::cycles();
  // relaxed: hints, and whoever reads half of them old leaves for nothing, or a little later.
  w->busy_on.store(cpu + 1, std::memory_order_relaxed);
  w->busy_at.store(now, std::memory_order_relaxed);
  // The one with the higher number leaves: if both did they would meet again.
  for (uint32_t i = 1; i <= tuning::kNeighboursLookedAt && i <= w->index; ++i) {
    const Worker* other = w->pool->worker(w->index - i);
    if (other == nullptr || other->busy_on.load(std::memory_order_relaxed) != cpu + 1) continue;
    // It may be a little ahead.
    const auto age = static_cast<int64_t>(now - other->busy_at.load(std::memory_order_relaxed));
    if (age > static_cast<int64_t>(tuning::kFreshCpuUs * base::cycles_per_microsecond())) continue;
    leave_cpu(w, cpu);
    w->busy_on.store(0, std::memory_order_relaxed);
    return;
  }
}

}  // namespace bosk::sched
