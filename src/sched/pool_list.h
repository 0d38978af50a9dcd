// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pools of the process, and what ends them: for those who look at all workers, and for pool.cpp and pause.cpp.
#pragma once

#include "base/sleeping_lock.h"
#include "base/spinlock.h"
#include "sched/worker.h"

namespace bosk::sched {

struct PoolList {
  /// Who holds it may rely on it that no pool of an initial thread comes or goes. Taken before `lock`;
  /// nobody who holds it waits for code of the program.
  base::SleepingLock gate;
  base::SpinLock lock;  ///< guards the links; sub-pools come and go under it alone
  Pool* first = nullptr;
  StrangerLook<base::StdAtomics> look_at_native;  ///< of the monitor, which holds `lock`
  /// How many of them are initial threads'. relaxed: a hint to who does not hold `lock`.
  std::atomic<uint32_t> initial_threads{0};
  std::atomic<uint32_t> ending{
      0};  ///< futex: pools of initial threads that ended and are not freed
};
inline constinit PoolList pools;

/// Under pools.lock; who holds it is not switched out.
template <typename Body>
void for_each_worker(Body body) {
  for (Pool* pool = pools.first; pool != nullptr; pool = pool->next) {
    const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < workers; ++i) body(pool, pool->worker(i));
  }
}

/// What worker 0 and the pool hold that others can use goes back to the process's cache. By the thread
/// of worker 0, or while that cannot be in the scheduler.
void give_carriers_back(Pool* pool);
/// Workers 1 … end, each as soon as it is idle.
void dismiss_workers(Pool* pool);
/// Its thread, who plays worker 0, has left it for good: workers end, and the last one frees the pool.
void end_pool(Pool* pool);
/// Of a worker that has ended, or whose pool is freed, all but the record itself.
void free_belongings(Worker* w);
void free_ended_worker(Worker* w);

}  // namespace bosk::sched
