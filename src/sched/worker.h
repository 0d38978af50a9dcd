// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers and pools: the kernel threads that play PUs for one contention group.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/atomics_policy.h"
#include "base/cpu.h"
#include "base/spinlock.h"
#include "context/identity.h"
#include "sched/bubble.h"
#include "sched/parking_protocol.h"
#include "sched/run_queue.h"
#include "sched/thread.h"

namespace bosk::sched {

struct Pool;

/// Done by the next thread on the same worker after the previous one has left its stack: a thread may
/// be published (queued, handed to its donor) only then.
struct Post {
  void (*action)(void* argument, Worker* worker) = nullptr;
  void* argument = nullptr;
};

/// Members of one team that wait in its barrier on one worker. Private to the worker.
struct BarrierGroup {
  Bubble* bubble = nullptr;
  uint32_t epoch = 0;        ///< opens when the bubble's epoch differs from this
  bool cancellable = false;  ///< opens on bubble->cancelled, too
  uint32_t unreported = 0;   ///< arrivals not yet added to bubble->arrived
  Thread* first = nullptr;
  Thread** last = &first;
  BarrierGroup* next = nullptr;
};

/// What a report adds up. Written by the worker's own kernel thread only, read at exit.
struct WorkerCounts {
  uint64_t ghosts_run = 0;     ///< ghosts started on this worker
  uint64_t ghosts_stolen = 0;  ///< of these, of teams that another worker opened
  uint64_t switches = 0;
  uint64_t blocked = 0;         ///< times a ghost or member was switched out
  uint64_t threads_stolen = 0;  ///< ready threads taken from another worker
  uint64_t preemptions = 0;
  uint64_t promotions = 0;
  uint64_t parks = 0;
  uint64_t parked_ns = 0;
  uint64_t identity_hops = 0;
};

/// One PU's role. Whichever kernel thread plays it (normally always the same) owns every field that
/// is not atomic or under a lock.
struct alignas(128) Worker {
  // ---- private to the role
  uint32_t index = 0;
  Pool* pool = nullptr;
  /// The kernel thread that plays the role now. Others read it: preemption_protocol.h.
  std::atomic<context::Identity*> kernel{nullptr};
  Thread* native = nullptr;   ///< the thread with this worker's own POSIX identity
  Thread* keeper = nullptr;   ///< carrier whose own kernel thread plays the role
  Thread* current = nullptr;  ///< who runs; the preemption handler's view
  Post post;
  Thread* carriers = nullptr;  ///< free ones
  uint32_t carrier_count = 0;
  Bubble* free_bubbles = nullptr;  ///< hot: recycled last in, first out
  BarrierGroup* groups = nullptr;
  BarrierGroup* free_groups = nullptr;
  uint32_t unreported_groups = 0;  ///< groups with unreported arrivals
  /// Set while the native thread is switched out and waits for a condition that its worker polls at
  /// every scheduling point; null while it runs or waits for an event.
  bool (*native_condition)(Thread* native) = nullptr;
  /// Steal only descendants of it; null: anything of the pool. Written by the role, read by those who
  /// offer work (a hint: relaxed).
  std::atomic<Bubble*> help_root{nullptr};
  uintptr_t spin_pc = 0;         ///< where the last ticks found the running thread
  uint32_t spin_ticks = 0;       ///< ticks in a row that found it near there
  uint32_t ticks_with_work = 0;  ///< ticks in a row that found work queued in the running team
  uint32_t tick_parity = 0;      ///< ghosts and ready threads take turns
  uint32_t ring_parity = 0;      ///< mates, and what else the worker has, take turns
  bool ghosts_first = false;  ///< the next carrier starts a ghost before it takes a ready thread
  uint32_t last_victim = 0;
  uint32_t futile = 0;  ///< offers in a row that led to no ghost
  WorkerCounts counts;

  // ---- shared: ready threads of this PU
  RunQueue ready;

  // ---- shared: what an idle worker spins on
  alignas(base::kCacheLine) std::atomic<Bubble*> mail{nullptr};
  std::atomic<uint32_t> idle{0};  ///< 1: polls its mail, or sleeps
  ParkingSpot<base::StdAtomics> spot;

  // ---- shared: bubbles with ghosts that were opened here, outermost first
  alignas(base::kCacheLine) std::atomic<uint32_t> open_count{0};
  uint32_t open_capacity = 0;
  std::atomic<std::atomic<Bubble*>*> open_list{nullptr};

  // ---- shared: flat teams
  struct alignas(base::kCacheLine) Job {
    std::atomic<uint64_t> sequence{0};  ///< of the team that the native thread shall join
    Bubble* bubble = nullptr;           ///< written before sequence
  } job;
  uint64_t job_seen = 0;  ///< private
  alignas(base::kCacheLine) std::atomic<uint64_t> flat_arrived{
      0};  ///< written by the native thread
  alignas(base::kCacheLine) std::atomic<uint64_t> flat_release{0};  ///< written by its tree parent
};

/// May the worker help with `bubble` now? A preference: the bubble may be recycled while one looks.
inline bool may_help(const Worker* w, const Bubble* bubble) {
  const Bubble* root = w->help_root.load(std::memory_order_relaxed);
  return root == nullptr || bubble == nullptr || descends_from(bubble, root);
}

/// Said into a worker's mail when there is something to look for that is not one bubble.
inline Bubble* const kLookAround = reinterpret_cast<Bubble*>(uintptr_t{1});

constexpr uint32_t kMaxWorkers = 4096;

/// The workers of one contention group: an initial thread and everything it opens. Worker 0 is played
/// by the initial thread's own kernel thread. Pools share nothing but the kernel's CPUs, so that a
/// stranger's endless work cannot hold up a region.
struct Pool {
  std::atomic<uint32_t> worker_count{0};  ///< grows on demand
  uint32_t worker_limit = 1;              ///< PUs of the process's mask, or BOSK_WORKERS
  Thread* initial = nullptr;
  uint8_t identity_needs = 0;        ///< omp::IdentityNeeds, decided per level-1 region
  uint64_t next_sequence = 0;        ///< region numbers of flat teams; initial thread only
  base::KernelSigset base_mask = 0;  ///< of every kernel thread that plays a worker
  uint64_t crowded_spin_cycles = 0;  ///< the same with more workers than processors
  uint64_t spin_cycles = 0;          ///< how long an idle worker polls before it sleeps

  alignas(base::kCacheLine) std::atomic<uint32_t> idle_count{0};  ///< workers with idle == 1
  std::atomic<uint32_t> parked{0};                                ///< of these, asleep
  std::atomic<uint32_t> growing{0};                               ///< somebody makes workers
  std::atomic<uint32_t> threads_in_use{1};                        ///< counted for thread-limit-var
  std::atomic<uint32_t> promoted{0};                              ///< threads without a role
  /// Of level-1 members with an index of worker_limit or more; guarded by member_lock.
  alignas(base::kCacheLine) context::Identity** member_identities = nullptr;
  uint32_t member_identity_count = 0;
  base::SpinLock member_lock;
  Pool* next = nullptr;  ///< in the list of all pools
  std::atomic<Worker*> workers[kMaxWorkers] = {};

  Worker* worker(uint32_t index) const { return workers[index].load(std::memory_order_acquire); }
};

}  // namespace bosk::sched
