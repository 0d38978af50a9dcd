// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pauses. Two phases: with the gate closed all threads are told to end, which involves no code of the
// program; then, with everything usable again, they are joined. Their destructors are the program's code
// and may open regions.
#include "sched/pause.h"

#include <limits.h>
#include <pthread.h>

#include "base/mapped_array.h"
#include "sched/configuration.h"
#include "sched/pool_list.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"
#include "sched/services.h"

namespace bosk::sched {
namespace {

/// What is left to be joined.
struct Ended {
  base::MappedArray<pthread_t> workers;
  context::Identity* donors = nullptr;  ///< linked by next
  pthread_t factory{};
  bool has_factory = false;

  void join() {
    for (uint32_t i = 0; i < workers.size(); ++i) pthread_join(workers[i], nullptr);
    workers.release();
    while (context::Identity* donor = donors) {
      donors = donor->next;
      context::join_donor(donor);
    }
    if (has_factory) pthread_join(factory, nullptr);
  }
};

/// Pools of initial threads stay where they are while the gate is closed; sub-pools may not.
template <class Action>
void for_each_pool(bool sub_pools, Action action) {
  base::SpinGuard guard(pools.lock);
  for (Pool* pool = pools.first; pool != nullptr; pool = pool->next)
    if (sub_pools || pool->outer == nullptr) action(pool);
}

/// The same without the lock, for what waits.
template <class Action>
void for_each_group(Action action) {
  Pool* pool = nullptr;
  for (;;) {
    {
      base::SpinGuard guard(pools.lock);
      pool = pool == nullptr ? pools.first : pool->next;
      while (pool != nullptr && pool->outer != nullptr) pool = pool->next;
    }
    if (pool == nullptr) return;
    action(pool);
  }
}

/// Its thread is outside of regions and of the scheduler, and plays its worker.
bool is_quiet(const Pool* pool) {
  Thread* initial = pool->initial;
  // acquire: the join of its last region.
  const Bubble* bubble = std::atomic_ref(initial->bubble).load(std::memory_order_acquire);
  if (bubble->depth.load(std::memory_order_relaxed) != 0) return false;
  if (pool->asking.load(std::memory_order_acquire) != 0) return false;
  // Who was in ensure_usable() when this pause took back what may be used, has come out and perhaps ended its region since, may have
  // stored to it after that: read after what says that it is out.
  if (pool->usable.load(std::memory_order_relaxed) != 0) return false;
  const EntitySource* entities = pool->entities.load(std::memory_order_acquire);
  if (entities != nullptr && entities->is_busy(pool)) return false;
  // Written by that thread's own code and handlers only, with plain instructions.
  context::ThreadBlock* block = initial->own->block;
  return std::atomic_ref(block->preempt_off).load(std::memory_order_relaxed) == 0 &&
         std::atomic_ref(block->self).load(std::memory_order_relaxed) == initial &&
         pool->worker(0)->kernel.load(std::memory_order_relaxed) == initial->own &&
         pool->promoted.load(std::memory_order_relaxed) == 0;
}

bool all_are_quiet() {
  bool quiet = true;
  for_each_pool(false, [&](const Pool* pool) { quiet = quiet && is_quiet(pool); });
  return quiet;
}

void note_who_is_joined(Ended* ended) {
  for_each_pool(true, [&](const Pool* pool) {
    const uint32_t count = pool->worker_count.load(std::memory_order_acquire);
    for (uint32_t i = 1; i < count; ++i) {
      Worker* w = pool->worker(i);
      w->joined = ended->workers.push(w->native->own->pthread);
    }
  });
}

void wait_for_one(const std::atomic<uint32_t>& word) {
  // acquire: what those who left did to the pool.
  while (const uint32_t left = word.load(std::memory_order_acquire) - 1)
    base::futex_wait(&word, left + 1);
}

/// Worker 0 knows nothing of what the others had: their teams, which it may have had on its list.
void forget_others(Worker* w) {
  w->open_count.store(0, std::memory_order_relaxed);
  w->mail.store(nullptr, std::memory_order_relaxed);
  w->help_root.store(nullptr, std::memory_order_relaxed);
  forget_ended_members(w);
  w->called_for = nullptr;
  w->last_victim = 0;
  w->turn_of.store(nullptr, std::memory_order_relaxed);
  w->pool->gang_line.first.store(nullptr, std::memory_order_relaxed);
  free_groups(w);
}

void end_workers(const Thread* me) {
  for_each_group([](Pool* pool) {
    give_carriers_back(pool);
    Worker* own = pool->worker(0);
    if (own->inner != nullptr) end_pool(own->inner);
    own->inner = nullptr;
    dismiss_workers(pool);
  });
  for_each_group([me](Pool* pool) {
    wait_for_one(pool->worker_count);
    wait_for_one(pool->holders);
    // seq_cst: omp/open_teams.h.
    while (pool->visitors.load(std::memory_order_seq_cst) != 0) base::raw_syscall(SYS_sched_yield);
    forget_others(pool->worker(0));
    for (uint32_t i = 1; i < kMaxWorkers && pool->worker(i) != nullptr; ++i) {
      free_ended_worker(pool->worker(i));
      pool->workers[i].store(nullptr, std::memory_order_relaxed);
    }
    if (me == nullptr || pool != me->pool) return;
    // Only what this thread alone uses: others may open a region of one at any time.
    free_belongings(pool->worker(0));
    pool->worker(0)->counts = {};
    pool->worker_limit = configuration().worker_limit;
  });
  while (const uint32_t ending = pools.ending.load(std::memory_order_acquire))
    base::futex_wait(&pools.ending, ending);
}

void end_donors(Ended* ended) {
  for (Thread* carrier = take_all_carriers(); carrier != nullptr;) {
    Thread* next = carrier->link;
    context::Identity* donor = carrier->own;
    delete_timer(donor);
    donor->next = ended->donors;
    ended->donors = donor;
    context::end_donor(donor);
    carrier = next;
  }
}

}  // namespace

void wait_out_pause() {
  const uint32_t seen = pauses.load(std::memory_order_acquire);
  if (seen % 2 == 0) return;
  while (pauses.load(std::memory_order_acquire) == seen) base::futex_wait(&pauses, seen);
}

bool pause_all(Thread* me, bool end_threads) {
  if (me != nullptr) {
    // Home from wherever its role was.
    enter(me);
    leave(me);
  }
  Ended ended;
  pools.gate.lock();
  // relaxed: the heavy barrier.
  pauses.fetch_add(1, std::memory_order_relaxed);
  for_each_pool(false, [](Pool* pool) { pool->usable.store(0, std::memory_order_relaxed); });
  base::StdAtomics::heavy_barrier();
  bool quiet = all_are_quiet();
  if (quiet) {
    // What the others did to their workers, before they left the scheduler, is visible after this.
    base::StdAtomics::heavy_barrier();
    quiet = !services_are_needed();
  }
  if (quiet) {
    if (end_threads) {
      stop_services();
      note_who_is_joined(&ended);
      end_workers(me);
      end_donors(&ended);
      ended.has_factory = context::stop_factory(&ended.factory);
    } else {
      for_each_pool(
          false, [](Pool* pool) { pool->sleeps_at_once.store(true, std::memory_order_relaxed); });
    }
  } else {
    // A soft pause before this one still waits for the next region to end it.
    for_each_pool(false, [](Pool* pool) {
      if (!pool->sleeps_at_once.load(std::memory_order_relaxed))
        pool->usable.store(pool->worker_count.load(std::memory_order_acquire),
                           std::memory_order_relaxed);
    });
  }
  // release: see pause_is_on().
  pauses.fetch_add(1, std::memory_order_release);
  base::futex_wake(&pauses, INT_MAX);
  pools.gate.unlock();
  ended.join();
  return quiet;
}

void end_all_if_unused() {
  Ended ended;
  pools.gate.lock();
  bool unused = true;
  for_each_pool(false, [&](const Pool*) { unused = false; });
  if (unused) {
    // Nobody is in the scheduler, and whoever wants to be waits at the gate.
    while (const uint32_t ending = pools.ending.load(std::memory_order_acquire))
      base::futex_wait(&pools.ending, ending);
    stop_services();
    end_donors(&ended);
    ended.has_factory = context::stop_factory(&ended.factory);
  }
  pools.gate.unlock();
  ended.join();
}

void pause_forget_after_fork() { pauses.store(0, std::memory_order_relaxed); }

}  // namespace bosk::sched
