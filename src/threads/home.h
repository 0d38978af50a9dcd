// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where explicit threads live: the pool whose workers run them, the machine's queues, the policies.
//
// There is one home in a process, so that bubbles may be handed about: main's pool, if main is the first
// who needs one, else the pool of a kernel thread that is made for it and waits for good. Whoever makes
// threads and waits for them, they live there. When main leaves by pthread_exit it waits, as a process
// does, until all explicit threads have ended; who needs a home after that makes another one.
#pragma once

#include <stdint.h>

#include <atomic>

#include "policies/engine.h"
#include "sched/domain_queues.h"
#include "sched/scheduler.h"
#include "topology/machine.h"

namespace bosk::threads {

struct Home {
  sched::Pool* pool = nullptr;
  const topology::Machine* machine = nullptr;
  sched::DomainQueues queues;
  policies::PolicyEngine engine;
  context::FloatControl floats{};  ///< that threads start with: the maker's of the home
  uint64_t ns_per_cycle = 0;       ///< in 1/2^32
  bool counts_caches = false;      ///< see cache_figures.h
  /// Where bubbles lend threads (lending.h): per PU the domain of its last-level cache. Null: nowhere.
  const uint32_t* lend_within = nullptr;
  std::atomic<uint32_t> wanted_workers{0};
  base::SpinLock nesting;  ///< see records.h
  /// Threads that have not ended, asleep or not; kLeft: main has gone. Futex.
  alignas(base::kCacheLine) std::atomic<uint32_t> live{0};
  static constexpr uint32_t kLeft = 1u << 31;
};

/// Null: there is none.
Home* home();

/// The home, with workers to run threads, made if there is none. Null: `*error` says why. Preemption is
/// on. If `one_more`, one more thread is counted as living there, before anything else: from then on no
/// pause ends the workers. count_ended() takes it back.
Home* settle(sched::Thread* me, bool one_more, int* error);
void count_ended(Home* h);

/// The worker that the calling thread plays in the home's pool; null: in another. Preemption is off.
inline sched::Worker* worker_at(const Home* h) {
  sched::Thread* me = context::self();
  return me != nullptr && me->worker != nullptr && me->worker->pool == h->pool ? me->worker
                                                                               : nullptr;
}

/// The PU that the caller is on, as far as the home knows: of its worker, else the first.
inline uint32_t pu_here(const Home* h) {
  const sched::Worker* w = worker_at(h);
  return w != nullptr ? sched::pu_of_worker(*h->machine, w->index) : 0;
}

/// `count` entities can be found on the queue: workers are called. Preemption is off.
void announce(Home* h, uint32_t domain, uint32_t count);

/// To the engine (sched::RecallHook): the worker that runs the thread requeues it at its next tick.
void recall(void* home, sched::TreeEntity& running);

/// What the home's workers look at (source.cpp).
extern const sched::EntitySource the_source;
/// In a forked child.
void forget_after_fork();
uint32_t times_forked();

}  // namespace bosk::threads
