// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pools and workers: made on demand, ended with their initial thread, forgotten in a forked child.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "base/message.h"
#include "base/pages.h"
#include "base/spare_cpus.h"
#include "context/setxid.h"
#include "sched/configuration.h"
#include "sched/ghost_identity.h"
#include "sched/homes.h"
#include "sched/kernel_threads.h"
#include "sched/monitor.h"
#include "sched/pause.h"
#include "sched/pool_list.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"
#include "sched/services.h"
#include "sched/worker_start.h"

namespace bosk::sched {
namespace {

constinit pthread_key_t thread_end_key{};
constinit pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

/// In a forked child: the thread that forked, if it did so under another identity than an initial thread's
/// own (a donor's, a worker's) and has become the child's initial thread; and its pool when it has ended.
constinit Thread* adopted_by_child = nullptr;
constinit Pool* pool_of_adopted = nullptr;

/// A pool of which the calling thread plays worker 0.
Pool* make_pool(Thread* me) {
  auto* pool = make_record<Pool>();
  pool->initial = me;
  note_inheritance(pool, me);
  pool->spin_cycles = configuration().spin_cycles;
  pool->wake_window_cycles = configuration().wake_window_cycles;
  Worker* w = make_worker(pool, 0);
  w->native = w->current = me;
  w->kernel.store(me->own, std::memory_order_relaxed);
  pool->workers[0].store(w, std::memory_order_release);
  pool->worker_count.store(1, std::memory_order_release);
  return pool;
}

void live_in(Pool* pool, Thread* me) {
  me->pinned = me->worker = me->last_worker = pool->worker(0);
  me->pool = pool;
}

void list_pool(Pool* pool) {
  base::SpinGuard guard(pools.lock);
  pool->next = pools.first;
  pools.first = pool;
  if (pool->outer == nullptr) pools.initial_threads.fetch_add(1, std::memory_order_relaxed);
}

void unlist_pool(Pool* pool) {
  base::SpinGuard guard(pools.lock);
  Pool** at = &pools.first;
  while (*at != pool) at = &(*at)->next;
  *at = pool->next;
  if (pool->outer == nullptr) pools.initial_threads.fetch_sub(1, std::memory_order_relaxed);
}

/// pthread_exit of such a thread. Its records are those of a donor or of a worker's thread that the child
/// has not, so they stay, and with them the pool; the child ends with its last thread.
void adopted_thread_ends(Thread* me) {
  Pool* pool = me->pool;
  pool_of_adopted = pool;
  pool->holders.fetch_add(1, std::memory_order_relaxed);
  pools.gate.lock();
  unlist_pool(pool);
  pools.gate.unlock();
  delete_timer(me->own);
  context::disown_calling_thread(me->own);
  end_pool(pool);
  // acquire: what the workers gave back.
  while (const uint32_t others = pool->holders.load(std::memory_order_acquire) - 1)
    base::futex_wait(&pool->holders, others + 1);
  end_all_if_unused();
}

void thread_ends(void* argument) {
  auto* me = static_cast<Thread*>(argument);
  if (context::self() != me) return;  // a forked child's copy, or a thread that was forgotten
  if (BOSK_UNLIKELY(me == adopted_by_child)) {
    adopted_thread_ends(me);
    return;
  }
  // Other destructors may still call the runtime; they get a new record, and this runs again.
  Pool* pool = me->pool;
  if (const EntitySource* entities = pool->entities.load(std::memory_order_acquire))
    entities->thread_ends(me);
  pools.gate.lock();
  unlist_pool(pool);
  pools.ending.fetch_add(1, std::memory_order_relaxed);
  pools.gate.unlock();
  delete_timer(me->own);
  context::disown_calling_thread(me->own);
  if (configuration().thread_end_hook != nullptr) configuration().thread_end_hook(me);
  // The thread's own records go with the pool's workers: a worker that has just made this thread ready
  // for the last time may still be on its way to look whether its timer ticks.
  end_pool(pool);
  end_all_if_unused();
}

void make_key() { pthread_key_create(&thread_end_key, thread_ends); }

}  // namespace

void give_carriers_back(Pool* pool) {
  Worker* own = pool->worker(0);
  while (Thread* carrier = own->carriers) {
    own->carriers = carrier->link;
    return_carrier(carrier);
  }
  own->carrier_count = 0;
  for (uint32_t i = 0; i < pool->member_identity_count; ++i)
    if (context::Identity* identity = pool->member_identities[i])
      return_carrier(own_thread(identity));
  base::unmap_pages(pool->member_identities,
                    pool->member_identity_count * sizeof(context::Identity*));
  pool->member_identities = nullptr;
  pool->member_identity_count = 0;
}

void dismiss_workers(Pool* pool) {
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 1; i < workers; ++i) {
    Worker* w = pool->worker(i);
    w->job.bubble = nullptr;
    w->job.sequence.store(UINT64_MAX, std::memory_order_release);
    wake_worker(w);
  }
}

/// One of its workers ends; the last frees it. What a sub-pool's workers may still look at (its teams come
/// from the worker that opened them) belongs to the pool around it, which therefore outlives it.
void release_pool(Pool* pool) {
  // Where one is left, a pause may wait for that. The pool may be gone then: a wake-up at its address is
  // harmless.
  const uint32_t workers = pool->worker_count.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if (workers == 1) base::futex_wake(&pool->worker_count, INT32_MAX);
  if (workers != 0) return;
  while (pool != nullptr) {
    const uint32_t holders = pool->holders.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (holders == 1) base::futex_wake(&pool->holders, INT32_MAX);
    if (holders != 0) return;
    Pool* around = pool->outer != nullptr ? pool->outer->pool : nullptr;
    free_pool(pool);
    pool = around;
  }
}

void end_pool(Pool* pool) {
  // No region is open, so every worker idles.
  give_seats_up(pool);
  if (pool->outer != nullptr) unlist_pool(pool);
  Worker* own = pool->worker(0);
  if (own->inner != nullptr) end_pool(own->inner);
  give_carriers_back(pool);
  dismiss_workers(pool);
  release_pool(pool);
}

void free_belongings(Worker* w) {
  if (configuration().worker_end_hook != nullptr) configuration().worker_end_hook(w);
  free_groups(w);
  free_ended_members(w);
}

void free_ended_worker(Worker* w) {
  free_belongings(w);
  free(w->native->own);
  free(w->native);
  free(w->open_list.load(std::memory_order_relaxed));
  free(w);
}

void free_pool(Pool* pool) {
  while (pool->visitors.load(std::memory_order_acquire) != 0) base::raw_syscall(SYS_sched_yield);
  for (uint32_t i = 0; i < kMaxWorkers; ++i) {
    Worker* w = pool->worker(i);
    if (w == nullptr) break;
    // A sub-pool's first worker is played by a thread of the pool around it.
    if (i == 0 && pool->outer != nullptr) {
      free_belongings(w);
      free(w->open_list.load(std::memory_order_relaxed));
      free(w);
    } else {
      free_ended_worker(w);
    }
  }
  const bool of_initial_thread = pool->outer == nullptr;
  free_seats(pool);
  free(pool);
  if (!of_initial_thread) return;
  // release: what it held is given back.
  if (pools.ending.fetch_sub(1, std::memory_order_release) == 1)
    base::futex_wake(&pools.ending, INT32_MAX);
}

Thread* attach_calling_thread() {
  configure();
  auto* me = make_record<Thread>();
  me->own = me->identity = make_record<context::Identity>();
  me->thread_kind = ThreadKind::kInitial;
  context::adopt_calling_thread(me->own);
  me->run_as(me->own);
  find_stack(me);
  me->own->block->self = me;
  Pool* pool = make_pool(me);
  live_in(pool, me);
  if (configuration().thread_begin_hook != nullptr) configuration().thread_begin_hook(me);
  pools.gate.lock();
  list_pool(pool);
  pools.gate.unlock();
  pthread_once(&thread_end_once, make_key);
  pthread_setspecific(thread_end_key, me);
  return me;
}

Pool* make_sub_pool(Thread* me) {
  Pool* around = me->pool;
  around->holders.fetch_add(1, std::memory_order_relaxed);
  Pool* pool = make_pool(me);
  pool->outer = me->worker;
  pool->group = around->group;
  pool->initial = around->initial;
  pool->base_mask = around->base_mask;
  pool->threading.store(Threading::kKernelThreads, std::memory_order_relaxed);
  list_pool(pool);
  return pool;
}

bool is_crowded(const Pool* pool) {
  return live_workers.load(std::memory_order_relaxed) >= pool->worker_limit;
}

/// There is nothing to run the member on. Of several that find so at once, one ends the program.
[[noreturn]] static void no_thread(int error) {
  static constinit std::atomic<uint32_t> said{0};
  while (said.exchange(1, std::memory_order_relaxed) != 0) base::futex_wait(&said, 1);
  base::gomp_fatal("Thread creation failed: %s", strerror(error));
}

void require_workers(Pool* pool, uint32_t count) {
  uint32_t have = pool->worker_count.load(std::memory_order_acquire);
  for (; have < count; ++have) {
    const int error = have < kMaxWorkers ? start_worker(pool, have) : EAGAIN;
    if (error != 0) no_thread(error);
  }
}

uint32_t ensure_workers(Pool* pool, uint32_t count) {
  if (count > kMaxWorkers) count = kMaxWorkers;
  uint32_t have = pool->worker_count.load(std::memory_order_acquire);
  if (have >= count) return have;
  // Several members may want more workers at once: one makes them, the others go on without.
  if (pool->growing.exchange(1, std::memory_order_acquire) != 0) return have;
  have = pool->worker_count.load(std::memory_order_acquire);
  if (have < count && !base::is_a_cpu_free())
    pool->rivals.note_seen(base::cycles(), base::cycles_per_microsecond());
  while (have < count) {
    int error = start_worker(pool, have);
    // On a kernel thread of its own it needs no timer, which may have been what was refused.
    if (error != 0 && !can_multiplex(pool) && (error = start_worker(pool, have)) != 0)
      no_thread(error);
    if (error != 0) {
      // Fewer workers, not fewer threads: what a worker would have run is multiplexed.
      pool->worker_limit = have;
      base::say("only %u of %u workers could be started (%s); threads share them", have, count,
                strerror(error));
      break;
    }
    ++have;
  }
  pool->growing.store(0, std::memory_order_release);
  return have;
}

/// Also outside of regions, where nothing else tells a pause that the pool's workers are being made. Of a pause's look at `asking` and of the
/// look at `pauses` here one sees the other side's store: both sides have a fence between, and here it is not a light one. The one that
/// is on then may not have seen it and is waited for; those after it see it, and change nothing.
static void begin_to_ask(Pool* pool) {
  wait_out_pause();
  pool->asking.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  wait_out_pause();
}

uint32_t ensure_usable(Pool* pool, uint32_t count, bool all_native) {
  begin_to_ask(pool);
  pool->sleeps_at_once.store(false, std::memory_order_relaxed);
  if (pool->worker_count.load(std::memory_order_relaxed) == 1) {
    // The program may have blocked signals or chosen CPUs since the thread's first call of the runtime.
    note_inheritance(pool, pool->initial);
    if (!all_native && count > pool->worker_limit) count = pool->worker_limit;
  }
  keep_seats(pool, count);
  const uint32_t have = ensure_workers(pool, count);
  // A pause has ended it. Where there are several pools one's initial thread may poll while another one's members want its CPU.
  const bool several =
      pool->threading.load(std::memory_order_relaxed) != Threading::kKernelThreads &&
      pools.initial_threads.load(std::memory_order_relaxed) > 1;
  if (several || pool->threading.load(std::memory_order_relaxed) == Threading::kMultiplexed)
    ensure_monitor(pool->initial);
  if (several) tell_monitor();
  pool->usable.store(have, std::memory_order_relaxed);
  // release: a pause that sees it sees the workers.
  pool->asking.fetch_sub(1, std::memory_order_release);
  return have;
}

Pool* first_pool() { return pools.first; }

bool has_initial_threads() { return pools.initial_threads.load(std::memory_order_relaxed) != 0; }

void forget_pools_after_fork() {
  Pool* const forgotten = pools.first;
  new (&pools) PoolList;
  pause_forget_after_fork();
  live_workers.store(0, std::memory_order_relaxed);
  carriers_forget_after_fork();
  address_wait_forget_after_fork();
  services_forget_after_fork();
  Thread* me = context::self();
  if (me == nullptr) return;
  // The forking thread is alone in the child, on the stack and under the identity it had.
  context::Identity* identity = me->identity;
  identity->tid = base::thread_id();
  identity->timer.store(-1, std::memory_order_relaxed);  // timers are not inherited
  identity->soon.store(-1, std::memory_order_relaxed);
  identity->call_note.clear();
  identity->timer_armed.store(0, std::memory_order_relaxed);
  identity->kind = context::IdentityKind::kNative;
  context::register_kernel_thread(identity->tid, identity->thread_pointer);
  if (me->own != identity && me->own->kind == context::IdentityKind::kNative)
    context::keep_stack_of(me->own);
  me->errand = Errand::kNone;
  me->note(kIsEntity, false);
  if (me->thread_kind != ThreadKind::kInitial || me->own != identity) {
    adopted_by_child = me;
    // So that pthread_exit ends what it makes in the child.
    pthread_setspecific(thread_end_key, me);
  }
  me->own = identity;
  me->thread_kind = ThreadKind::kInitial;
  Pool* pool = make_pool(me);
  pool->before_fork = forgotten;
  live_in(pool, me);
  list_pool(pool);
}

}  // namespace bosk::sched
