// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers on CPUs of their own, although nobody is bound.
//
// The kernel likes to put a thread that is made or woken beside the one that does it, and takes some 20
// ms to part them while a CPU beside them is idle. In that time a region of two threads takes 30 us
// instead of .2, and one with work in it twice as long. So a worker that begins, or is woken, beside
// somebody of its pool goes elsewhere: it takes that CPU out of its affinity mask and puts it back at once.
#include <string.h>

#include "sched/homes.h"
#include "sched/kernel_threads.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

constexpr uint32_t kNoCpu = UINT32_MAX;

uint32_t current_cpu() {
  unsigned cpu = kNoCpu;
  return base::raw_syscall(SYS_getcpu, base::address_of(&cpu)) == 0 ? cpu : kNoCpu;
}

bool set_cpus(const CpuMask& mask) {
  return base::raw_syscall(SYS_sched_setaffinity, 0, mask.bytes, base::address_of(mask.words)) == 0;
}

/// The calling kernel thread goes to another of its CPUs. False: there is none, or nobody can tell.
bool leave_for_other(const CpuMask& avoided) {
  const CpuMask own = cpus_of_calling_thread();
  if (own.bytes == 0) return false;
  CpuMask others = own;
  for (uint32_t i = 0; i < CpuMask::kWords; ++i) others.words[i] &= ~avoided.words[i];
  return move_into(others, own);
}

bool note_cpu(CpuMask& mask, uint32_t cpu) {
  if (cpu / 64 >= CpuMask::kWords) return false;
  const uint64_t bit = uint64_t{1} << cpu % 64;
  const bool is_new = (mask.words[cpu / 64] & bit) == 0;
  mask.words[cpu / 64] |= bit;
  return is_new;
}

}  // namespace

bool same_cpus(const CpuMask& a, const CpuMask& b) {
  return memcmp(a.words, b.words, sizeof a.words) == 0;
}

bool move_into(const CpuMask& target, const CpuMask& own) {
  uint64_t any = 0;
  for (const uint64_t word : target.words) any |= word;
  if (any == 0 || !set_cpus(target)) return false;
  // Somebody else may have bound this thread meanwhile; then that stands.
  if (same_cpus(cpus_of_calling_thread(), target)) set_cpus(own);
  return true;
}

void note_creators_cpu(Pool* pool) { note_cpu(pool->start_cpus, current_cpu()); }

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

void start_apart(Pool* pool) {
  if (pool->cpus.bytes == 0 || note_cpu(pool->start_cpus, current_cpu())) return;
  if (leave_for_other(pool->start_cpus)) note_cpu(pool->start_cpus, current_cpu());
}

void wake_sleeper(Worker* target) {
  // Under a passive policy both sleep in turn, and one CPU serves them faster than two.
  // Where there are more threads than processors each CPU is somebody's anyway, and where others want them, too, the kernel knows better;
  // but who has a home goes there.
  const Pool* pool = target->pool;
  const bool is_placed = pool->seats.load(std::memory_order_relaxed) != nullptr;
  if (pool->wake_window_cycles == 0 && !is_crowded(pool) &&
      (is_placed || !pool->rivals.are_here(base::cycles())))
    target->woken_from.store(current_cpu() + 1, std::memory_order_relaxed);
  target->spot.wake();
}

/// The calling worker is not alone on this CPU.
static void leave_cpu(Worker* w, uint32_t cpu) {
  const uint64_t begin = base::cycles();
  if (w->part_again_at != 0 && static_cast<int64_t>(begin - w->part_again_at) < 0) return;
  CpuMask avoided;
  note_cpu(avoided, cpu);
  if (!go_home_from(w, cpu) && !leave_for_other(avoided)) return;
  // Late: others use that CPU, too. Better to leave it to the kernel for a while.
  const uint64_t end = base::cycles();
  const uint64_t us = base::cycles_per_microsecond();
  constexpr uint64_t kLateUs = 500;
  constexpr uint64_t kFirstPauseUs = 20'000;
  constexpr uint64_t kLongestPauseUs = 1'280'000;
  if (end - begin < kLateUs * us)
    w->part_pause_us = 0;
  else if (w->part_pause_us < kLongestPauseUs)
    w->part_pause_us = w->part_pause_us == 0 ? kFirstPauseUs : 2 * w->part_pause_us;
  w->part_again_at = w->part_pause_us == 0 ? 0 : end + w->part_pause_us * us;
}

void part_from_waker(Worker* w) {
  const uint32_t waker = w->woken_from.load(std::memory_order_relaxed);
  if (waker == 0) return;
  w->woken_from.store(0, std::memory_order_relaxed);
  if (current_cpu() == waker - 1) leave_cpu(w, waker - 1);
}

void part_from_busy_neighbours(Worker* w) {
  constexpr uint32_t kMostLooked = 4;
  constexpr uint64_t kFreshUs =
      4000;  // a turn of those that poll, in which the other may have had its tick at the beginning
  if (is_crowded(w->pool)) return;
  const uint32_t cpu = current_cpu();
  const uint64_t now = base::cycles();
  // relaxed: hints, and whoever reads half of them old leaves for nothing, or a little later.
  w->busy_on.store(cpu + 1, std::memory_order_relaxed);
  w->busy_at.store(now, std::memory_order_relaxed);
  // The one with the higher number leaves: if both did they would meet again.
  for (uint32_t i = 1; i <= kMostLooked && i <= w->index; ++i) {
    const Worker* other = w->pool->worker(w->index - i);
    if (other == nullptr || other->busy_on.load(std::memory_order_relaxed) != cpu + 1) continue;
    // It may be a little ahead.
    const auto age = static_cast<int64_t>(now - other->busy_at.load(std::memory_order_relaxed));
    if (age > static_cast<int64_t>(kFreshUs * base::cycles_per_microsecond())) continue;
    leave_cpu(w, cpu);
    w->busy_on.store(0, std::memory_order_relaxed);
    return;
  }
}

}  // namespace bosk::sched
