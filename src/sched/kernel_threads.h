// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel thread per OpenMP thread, where user-level threads cannot be had (docs/design/identity.md).
//
// Every team is then flat. Its opener plays worker 0 of a pool in which nobody else opens a team of that
// level: the pool of its contention group at level 1, below a sub-pool of its own that is kept for its
// next region. So fork, join and barrier of flat teams do for all of them.
#pragma once

#include "base/cpu.h"
#include "sched/worker.h"

namespace bosk::sched {

/// Every thread that blocks on a word has stored or seen it before it does so in the kernel.
inline constinit std::atomic<bool> on_kernel_threads{false};

/// Why they cannot be had, for the report; null as long as they can. relaxed: text that is never changed,
/// read when the program ends.
inline constinit std::atomic<const char*> why_kernel_threads{nullptr};

/// Asks context::provider() and keeps its answer in the pool.
bool decide_threading(Pool* pool);

/// Can the pool's threads be multiplexed? To be asked before the first ghost, carrier or timer is needed,
/// and not earlier: the first answer costs a thread. Preemption is on.
inline bool can_multiplex(Pool* pool) {
  // relaxed: whoever reads "multiplexed" takes donors from the factory, which orders what they are.
  return BOSK_LIKELY(pool->threading.load(std::memory_order_relaxed) == Threading::kMultiplexed) ||
         decide_threading(pool);
}

// ---- Only where can_multiplex() said no.

/// Sees to it that `count` workers exist, or ends the program in libgomp's words.
void require_workers(Pool* pool, uint32_t count);

/// The caller opens a team of `size`: until leave_sub_pool() it is worker 0 of a pool with so many.
void enter_sub_pool(Thread* me, uint32_t size);
void leave_sub_pool(Thread* me);
inline bool in_sub_pool(const Thread* me) { return me->pool->outer != nullptr; }

/// native_wait() without anything else to do meanwhile.
void wait_on_kernel_thread(Thread* me, bool (*condition)(Thread*), const Bubble* root);

/// More kernel threads than processors: polling takes time from those who work.
bool is_crowded(const Pool* pool);

}  // namespace bosk::sched
