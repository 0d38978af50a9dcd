// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What bounds the size of a team: processors, load (dyn-var), thread-limit-var.
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <atomic>

#include "context/floats_kept.h"
#include "omp/environment.h"
#include "omp/region.h"

namespace bosk::omp {

uint32_t processors_now() {
  const int program_errno = errno;
  uint32_t count = 0;
  for (int cpus = 1024; cpus <= (1 << 20) && count == 0; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes, set) == 0)
      count = static_cast<uint32_t>(CPU_COUNT_S(bytes, set));
    CPU_FREE(set);
  }
  errno = program_errno;
  return count != 0 ? count : 1;
}

uint32_t available_processors() {
  static constinit std::atomic<uint32_t> known{0};
  uint32_t count = known.load(std::memory_order_relaxed);
  if (count != 0) return count;
  count = processors_now();
  known.store(count, std::memory_order_relaxed);
  return count;
}

uint32_t dynamic_team_size(uint32_t wanted) {
  const context::FloatsKept kept;
  const uint32_t cpus = available_processors();
  double load = 0;
  if (getloadavg(&load, 1) != 1 || load < 0) load = 0;
  uint32_t busy = static_cast<uint32_t>(load);
  if (load - busy >= 0.5) ++busy;
  const uint32_t available = busy >= cpus ? 1 : cpus - busy;
  return wanted < available ? wanted : available;
}

// thread-limit-var counts the threads of the whole contention group.

uint32_t reserve_threads(const Task* task, uint32_t wanted) {
  std::atomic<uint32_t>& in_use = root_team(task->team)->contention.threads_in_use;
  const uint32_t limit = task->icvs->thread_limit;
  uint32_t seen = in_use.load(std::memory_order_relaxed);
  for (;;) {
    // The opener is counted already.
    const uint32_t free_threads = limit > seen ? limit - seen : 0;
    const uint32_t more = wanted - 1 < free_threads ? wanted - 1 : free_threads;
    if (in_use.compare_exchange_weak(seen, seen + more, std::memory_order_relaxed)) return more + 1;
  }
}

void release_threads(const Team* team) {
  root_team(parent_team(team))
      ->contention.threads_in_use.fetch_sub(team->size - 1, std::memory_order_relaxed);
}

}  // namespace bosk::omp
