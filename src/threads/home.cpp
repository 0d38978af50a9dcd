// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The home of explicit threads: made at first use, left when its initial thread ends.
#include "threads/home.h"

#include <pthread.h>
#include <unistd.h>

#include <new>

#include "base/maker_lock.h"
#include "base/message.h"
#include "base/pages.h"
#include "base/settings.h"
#include "bosk/error.h"
#include "context/new_thread.h"
#include "context/observers.h"
#include "locality/service.h"
#include "omp/environment.h"
#include "omp/machine_aside.h"
#include "omp/report.h"
#include "omp/team.h"
#include "sched/address_wait.h"
#include "sched/kernel_threads.h"
#include "sched/worker_caches.h"
#include "threads/cache_figures.h"
#include "threads/records.h"

namespace bosk::threads {
namespace {

constinit std::atomic<Home*> current{nullptr};
/// Guards changes of `current`.
constinit base::MakerLock making;
constinit std::atomic<uint32_t> forks{0};

void released(void* context, uint32_t domain, uint32_t count) {
  announce(static_cast<Home*>(context), domain, count);
}

class Making {
 public:
  Making() { making.lock(); }
  ~Making() { making.unlock(); }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
};

/// Before anybody takes the lock.
void hold_forks() {
  static constinit pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    sched::forget_entities_after_fork.store(forget_after_fork, std::memory_order_relaxed);
    pthread_atfork([] { making.before_fork(); }, [] { making.in_parent(); },
                   [] { making.in_child(); });
  });
}

/// What the program could notice about the identities of ghosts, for regions that explicit threads open:
/// else nobody asks before the first region of level 1.
uint8_t identity_needs() {
#ifdef BOSK_OWN_STACKS
  return static_cast<uint8_t>(omp::IdentityNeeds::kOwnStacks);
#else
  const uint64_t now = base::cycles();
  if (!context::identities_observable_cached(now))
    return static_cast<uint8_t>(omp::IdentityNeeds::kRelaxed);
  return static_cast<uint8_t>(context::stacks_observable_cached(now)
                                  ? omp::IdentityNeeds::kOwnStacks
                                  : omp::IdentityNeeds::kStrict);
#endif
}

/// For the report.
bool tell_figures(omp::EntitiesMade* made) {
  const Home* h = home();
  if (h == nullptr) return false;
  static_assert(omp::Distances::kDepths == policies::PolicyEngine::kStealDepths);
  for (uint32_t i = 0; i < omp::Distances::kDepths; ++i)
    made->distances.within[i] = h->engine.steals_within(i);
  made->distances.levels = h->engine.steal_levels();
  made->evolution = h->engine.evolution_counts();
  made->memory = h->engine.memory_counts();
  return true;
}

/// Not in the library's static data: workers of a home that was left may look at it for a while.
Home* make_home(sched::Pool* pool, int* error) {
  *error = sched::can_multiplex(pool) ? BOSK_ENOMEM : BOSK_ENOTSUP;
  if (*error == BOSK_ENOTSUP) return nullptr;
  const topology::Machine* machine = omp::read_machine_aside();
  void* memory = machine != nullptr ? base::map_pages(sizeof(Home)) : nullptr;
  if (memory == nullptr) return nullptr;
  auto* h = new (memory) Home;
  h->pool = pool;
  h->machine = machine;
  h->floats = context::float_control();
  h->ns_per_cycle = (uint64_t{1000} << 32) / base::cycles_per_microsecond();
  h->counts_caches = start_counting_caches();
  topology::Error said;
  policies::PolicyPlan plan = policies::plan_from_settings(*machine);
  if (!h->queues.build(*machine)) {
    base::unmap_pages(memory, sizeof(Home));
    return nullptr;
  }
  bool started = h->engine.start(h->queues, plan, {released, h}, &said);
  if (!started && base::settings().policy.count != 0) {
    plan = policies::default_plan(*machine);
    policies::say_refused(said);
    started = h->engine.start(h->queues, plan, {released, h}, &said);
  }
  if (!started) {
    base::say("threads cannot be made: %s", said.text);
    h->queues.release();
    base::unmap_pages(memory, sizeof(Home));
    return nullptr;
  }
  // With several memory nodes an idle PU that comes upon a bubble that has lent leaves its policy no choice of the node.
  if (h->engine.lends() && machine->n_nodes == 1) h->lend_within = machine->cache_level().of_pu;
  h->engine.set_recall({recall, h});
  h->engine.set_memory_requests(&locality::requests());
  h->wanted_workers.store(pool->worker_limit, std::memory_order_relaxed);
  if (pool->identity_needs == 0) pool->identity_needs = identity_needs();
  omp::ask_entities_made.store(tell_figures, std::memory_order_release);
  pool->entities.store(&the_source, std::memory_order_release);
  return h;
}

/// A kernel thread that is there to play the first worker.
struct Host {
  sched::Pool* pool = nullptr;
  std::atomic<uint32_t> there{0};  // futex
};

void* host_main(void* argument) {
  auto* host = static_cast<Host*>(argument);
  sched::Thread* me = omp::current_thread();
  host->pool = me->pool;
  // By the thread whose pool it is: what its workers inherit is noted in the pool, where it looks while it
  // waits.
  sched::ensure_usable(me->pool, me->pool->worker_limit, false);
  host->there.store(1, std::memory_order_release);
  base::futex_wake(&host->there, 1);
  // From here on the caller may have gone on. Its worker runs threads meanwhile, for good.
  for (;;) sched::native_wait(me, [](sched::Thread*) { return false; }, nullptr);
}

Home* make_home_elsewhere(int* error) {
  Host host;
  pthread_t thread;
  *error = BOSK_ENOMEM;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return nullptr;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const int refused = context::create_thread(&thread, &attributes, host_main, &host);
  pthread_attr_destroy(&attributes);
  if (refused != 0) return nullptr;
  while (host.there.load(std::memory_order_acquire) == 0) base::futex_wait(&host.there, 0);
  return make_home(host.pool, error);
}

}  // namespace

Home* home() {
  // acquire: it is complete when it is seen.
  return current.load(std::memory_order_acquire);
}

uint32_t times_forked() { return forks.load(std::memory_order_relaxed); }

static Home* find_home(sched::Thread* me, int* error) {
  if (Home* h = home(); BOSK_LIKELY(h != nullptr)) return h;
  hold_forks();
  const Making locked;
  Home* h = home();
  if (h == nullptr) {
    // Its pool stays as long as the process, or main says when not.
    const bool is_mains = me->pool->initial->own->tid == getpid();
    *error = BOSK_ENOTSUP;
    if (sched::can_multiplex(me->pool))
      h = is_mains ? make_home(me->pool, error) : make_home_elsewhere(error);
    if (h != nullptr && is_mains) sched::ensure_usable(h->pool, h->pool->worker_limit, false);
    current.store(h, std::memory_order_release);
  }
  return h;
}

Home* settle(sched::Thread* me, bool one_more, int* error) {
  for (;;) {
    Home* h = find_home(me, error);
    if (h == nullptr) return nullptr;
    if (one_more) {
      // seq_cst: of this and a pause's look, and of the pause's 0 in `usable` and the look below, one is
      // seen.
      if (BOSK_UNLIKELY((h->live.fetch_add(1, std::memory_order_seq_cst) & Home::kLeft) != 0)) {
        h->live.fetch_sub(1, std::memory_order_relaxed);
        base::raw_syscall(SYS_sched_yield);  // who leaves it is about to say so
        continue;
      }
      base::StdAtomics::light_barrier();
    }
    const uint32_t wanted = h->wanted_workers.load(std::memory_order_relaxed);
    if (BOSK_UNLIKELY(h->pool->usable.load(std::memory_order_relaxed) < wanted)) {
      // One at a time: what workers inherit is noted in the pool.
      const Making locked;
      if (h->pool->usable.load(std::memory_order_relaxed) < wanted) {
        const uint32_t have = sched::ensure_usable(h->pool, wanted, false);
        // Fewer than that many are not to be had.
        if (have < wanted) h->wanted_workers.store(have, std::memory_order_relaxed);
      }
    }
    return h;
  }
}

void count_ended(Home* h) {
  // release: who waits for the last one, and a pause, come after what it did.
  if (h->live.fetch_sub(1, std::memory_order_acq_rel) == 1) sched::wake(h->live, UINT32_MAX);
}

void announce(Home* h, uint32_t domain, uint32_t count) {
  const topology::Domain& d = h->machine->domain_array[domain];
  sched::Worker* w = worker_at(h);
  const uint32_t left =
      sched::call_for_entities(h->pool, w, d.first_pu, d.last_pu, h->machine->n_pus, count);
  // All below it are busy. Those elsewhere sleep, and would not come to pull it to their side.
  if (left != 0 && d.parent != nullptr) sched::call_from_afar(h->pool, w, *h->machine, d);
}

/// The initial thread of the pool ends (docs/threads.md).
void leave_home(sched::Thread* me) {
  Home* h = home();
  if (h == nullptr || h->pool != me->pool) return;
  for (uint32_t live = 0;
       !h->live.compare_exchange_strong(live, Home::kLeft, std::memory_order_acq_rel); live = 0)
    if (live != 0) sched::wait_on(h->live, live);
  {
    const Making locked;
    if (home() == h) current.store(nullptr, std::memory_order_release);
  }
  h->pool->entities.store(nullptr, std::memory_order_release);
}

void forget_after_fork() {
  forks.fetch_add(1, std::memory_order_relaxed);
  current.store(nullptr, std::memory_order_relaxed);
  thread_table.forget_after_fork();
  bubble_table.forget_after_fork();
  sched::forget_worker_caches();
}

}  // namespace bosk::threads
