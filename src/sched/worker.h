// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers and pools: the kernel threads that play PUs for one contention group.
#pragma once

#include <stdint.h>

#include <atomic>
#include <type_traits>

#include "base/atomics_policy.h"
#include "base/cpu.h"
#include "base/cpu_mask.h"
#include "base/spinlock.h"
#include "context/identity.h"
#include "context/switch.h"
#include "sched/brief_mask.h"
#include "sched/bubble.h"
#include "sched/ended_members.h"
#include "sched/entity_source.h"
#include "sched/far_wait.h"
#include "sched/home_watch.h"
#include "sched/parking_protocol.h"
#include "sched/rivals.h"
#include "sched/run_queue.h"
#include "sched/seats.h"
#include "sched/share_protocol.h"
#include "sched/spins/poll_looks.h"
#include "sched/spins/probe.h"
#include "sched/task_call_protocol.h"
#include "sched/thread.h"
#include "sched/time_share.h"
#include "sched/wait_condition.h"
#include "sched/worker_counts.h"

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

/// A field of a role, which its owner alone writes, and reads as it is. The report's sampler reads it at any time, under the lock of the pools,
/// by which what it points to stays. release, acquire there: it was made before.
template <typename T>
void set_seen(T** field, std::type_identity_t<T>* value) {
  std::atomic_ref(*field).store(value, std::memory_order_release);
}

/// The same of a role that somebody else plays: it may change at any moment. acquire: set_seen().
template <typename T>
T* seen(T*& field) {
  return std::atomic_ref(field).load(std::memory_order_acquire);
}

/// What a native thread needs to run its member, beside the word that it polls: with one line comes
/// everything, and the team's own lines need not be fetched from the opener's cache.
struct NativeJob {
  void (*function)(void*) = nullptr;
  void* data = nullptr;
  omp::Task* opener_task = nullptr;
  context::FloatControl floats{};
  uint32_t native_count = 0;
  bool flat = false;
  bool bound = false;   ///< the team has places
  uint16_t region = 0;  ///< for the report: its number
};

constexpr uint64_t kNeverLooks = UINT64_MAX;  ///< Worker::look_at without a seat

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
  Pool* inner = nullptr;  ///< for the regions that its native thread opens (kernel_threads.h)
  BarrierGroup* groups = nullptr;
  BarrierGroup* free_groups = nullptr;
  BarrierGroup* group_pages = nullptr;  ///< the first group of each mapping, linked by next
  uint32_t unreported_groups = 0;       ///< groups with unreported arrivals
  /// Set while the native thread is switched out and waits for a condition that its worker polls at
  /// every scheduling point; not while it runs or waits for an event.
  WaitCondition<base::StdAtomics, Thread> native_condition;
  /// Steal only descendants of it; null: anything of the pool. Written by the role, read by those who
  /// offer work: a hint, but the bubble may have been made just now (release, acquire).
  std::atomic<Bubble*> help_root{nullptr};
  SpinProbe probe;
  uint32_t trusted = 0;       ///< of spins/: verdicts without a second look
  uint8_t doubts = 0;         ///< how often in a row such a look has found something else
  uint32_t tick_parity = 0;   ///< ghosts and ready threads take turns
  EndedMembers ended_native;  ///< the native thread's, which alone may help as that member
  EndedMembers ended_ghosts;  ///< any thread may; the newest record, older ones behind it
  uint32_t more_ended_count = 0;
  uint32_t sweep_ended_at = 0;
  EndedMembers* free_ended = nullptr;
  EndedMembers* ended_pages = nullptr;  ///< the first record of each mapping, linked by next
  // What worth_taking() or steal_bubble() looked at last.
  GhostShare<base::StdAtomics, Bubble>* found_share = nullptr;  ///< null: the bubble's claim word
  GhostShare<base::StdAtomics, Bubble>::Look found_look;
  uint32_t found_generation = 0;  ///< of the claim word
  /// In one of the groups, but still on its stack, so that nobody else may have it yet.
  Thread* leaving = nullptr;
  bool leaving_is_free = false;  ///< its group has opened meanwhile
  /// To the tasks of this team it was called; null: to none, or it has seen to that.
  Bubble* called_for = nullptr;
  Bubble* wanted = nullptr;  ///< the next carrier starts a ghost of this one, if there is one
  Bubble* ended_of =
      nullptr;              ///< the team of which a ghost has just ended here, if its members poll
  bool calls_turn = false;  ///< it has begun a joint turn and is to call the others
  uint64_t called_for_ghosts_of = 0;  ///< the region; 0: or somebody else has run here since
  // Of gangs.cpp, in cycles.
  bool gang_refused = false;  ///< it has found something lately that it may not run
  uint64_t ask_again_at = 0;  ///< it was refused to begin a gang's turn; not before
  uint64_t refused_turn =
      0;  ///< Worker::turn_until of the gang's turn in which it has had nothing of that to run …
  uint64_t refused_since = 0;  ///< … and since when
  bool ghosts_first = false;   ///< the next carrier starts a ghost before it takes a ready thread
  bool joined = false;         ///< somebody waits for its kernel thread's end
  uint32_t last_victim = 0;
  // Under a passive wait policy (native.cpp):
  bool woke_sleeper = false;  ///< its native thread waits for a worker that it has just woken
  uint64_t woke_at = 0;       ///< when it did so last, in cycles
  // Of apart.cpp: when it may leave its waker's CPU next, in cycles; 0: at once.
  uint64_t part_again_at = 0;
  uint64_t part_pause_us = 0;
  uint64_t stranded_since = 0;    ///< EntitySource::rescue(): in cycles; 0: it saw nothing
  uint32_t turns_of_program = 0;  ///< give_way()
  uint32_t turns_given = 0;       ///< how often an explicit thread has given way here
  // Offers of bubbles whose ghosts the opener had all run before the helper came are not worth their
  // price; then some bubbles are not offered, twice as many each time.
  const Bubble* offered = nullptr;  ///< the last one offered; null: its join has been judged
  uint32_t offer_pause = 0;         ///< bubbles that will not be offered next
  uint32_t offer_pause_next = 0;
  WorkerCounts counts;
  Account metered;                                ///< of who runs since metered_since; see meter.h
  uint64_t metered_since = 0;                     ///< by the clock of …
  const context::Identity* metered_on = nullptr;  ///< … the kernel thread that played the role
  /// Of homes.cpp.
  struct Home {
    HomeWatch watch;
    const Seats* seats = nullptr;  ///< that the watch is for; null: it has not begun
    int tid = 0;                   ///< the kernel thread that looked last
    uint64_t interrupted = 0;      ///< how often it had been interrupted by others then
  } home;
  std::atomic<uint64_t> look_at{kNeverLooks};      ///< when to look after the home next, in cycles
  std::atomic<uint32_t> seen_on{topology::kNone};  ///< the PU where it was after the last look
  std::atomic<bool> is_called_home{false};         ///< by a colleague who is at home there
  FarWait far_wait;                                ///< in cycles; only where teams are placed
  /// Members of a team that a neighbour has taken from another node follow, and it is to have one: a hint.
  std::atomic<uint64_t> stays_until{0};
  uint32_t ghosts_left_alone = 0;  ///< times; leaves_ghosts()

  // ---- shared: ready threads of this PU
  RunQueue ready;

  // ---- shared: what an idle worker spins on
  alignas(base::kCacheLine) std::atomic<Bubble*> mail{nullptr};
  std::atomic<uint32_t> idle{0};  ///< 1: polls its mail, or sleeps
  ParkingSpot<base::StdAtomics> spot;
  /// Of task_calls.cpp: which teams' tasks it might run, while it sleeps; 0: none.
  std::atomic<uint64_t> call_signs{0};
  CallWord<base::StdAtomics, Bubble> call;
  /// Whose joint turn it is here, and until when in cycles (joint_turn.h).
  std::atomic<Bubble*> turn_of{nullptr};
  std::atomic<uint64_t> turn_until{0};
  /// A thread of no gang has had to wait for the end of a gang's turn: until then it is not taken from it.
  std::atomic<uint64_t> not_for_gangs_until{0};
  BriefMask<base::StdAtomics> brief_mask;  ///< of apart.cpp: of its kernel thread
  std::atomic<uint32_t> busy_on{0};        ///< of apart.cpp: the CPU, plus 1, and when
  std::atomic<uint64_t> busy_at{0};
  std::atomic<uint32_t> woken_from{0};  ///< its last waker's CPU, plus 1; 0: not to be looked at

  // ---- shared: bubbles with ghosts that were opened here, outermost first
  alignas(base::kCacheLine) std::atomic<uint32_t> open_count{0};
  uint32_t open_capacity = 0;
  std::atomic<std::atomic<Bubble*>*> open_list{nullptr};
  GhostShare<base::StdAtomics, Bubble> share;  ///< of the bubble that somebody here claims from

  // ---- shared: flat teams
  struct alignas(base::kCacheLine) Job {
    std::atomic<uint64_t> sequence{0};  ///< of the team that the native thread shall join
    Bubble* bubble = nullptr;  ///< written before sequence, as the rest; null: the pool ends
    NativeJob what;
  } job;
  uint64_t job_seen = 0;  ///< private
  /// It is time to look after its home: of those who never wait nobody else would remind them.
  std::atomic<bool> look_due{false};
  // Written by the native thread: the last barrier that it has arrived at, and the last flat region in
  // which its member has ended, with all below it in the tree.
  alignas(base::kCacheLine) std::atomic<uint64_t> flat_arrived{0};
  std::atomic<uint64_t> flat_ended{0};
  alignas(base::kCacheLine) std::atomic<uint64_t> flat_release{0};  ///< written by its tree parent

  // ---- while the report is on; here, where there is room
  omp::RegionBook* region_book = nullptr;  ///< of the layer above
  PollLooks poll_looks;
  /// Of time_samples.cpp, under the lock of the pools.
  struct Sampled {
    int tid = 0;  ///< the kernel thread that was seen last
    uint32_t region = 0;
    uint64_t clock = 0;
    uint64_t looked_at = 0;  ///< by a tick that the sampler has asked for
    uint64_t missed = 0;     ///< ns without a CPU since the last look, if they count, …
    uint64_t slept = 0;      ///< … of which it had nothing to do, …
    TimeShare idle{};        ///< … for this reason
    uint64_t slept_ns = 0;   ///< in its life
  } sampled;
};

/// The worker has slept for so long. By its own role.
inline void note_sleep(Worker* w, uint64_t ns) {
  add_seen(&w->counts.parked_ns, ns);
  add_seen(&w->counts.parks);
}

/// Under the lock of the pools, by anybody. Null: its kernel thread plays a worker of another pool now, or of none.
inline Thread* who_runs_on(Worker* w) {
  Thread* current = seen(w->current);
  return current != nullptr && seen(current->worker) == w ? current : nullptr;
}

/// The worker may go on to help the team as any of these ghosts. Before complete_members().
inline void note_ended_ghosts(Worker* w, Bubble* bubble, const Served& served) {
  const uint64_t life = bubble->life();
  EndedMembers& newest = w->ended_ghosts;
  // The usual cases: an earlier region of the same object, or one more of the same.
  if (BOSK_LIKELY(newest.bubble == bubble)) {
    if (newest.life != life) {
      newest.life = life;
      newest.base = served.base;
      newest.mask = served.mask;
      return;
    }
    if (BOSK_LIKELY(newest.base == served.base)) {
      newest.mask |= served.mask;
      return;
    }
  }
  note_members(w, bubble, life, served.base, served.mask);
}

/// Said into a worker's mail when there is something to look for that is not one bubble.
inline Bubble* const kLookAround = reinterpret_cast<Bubble*>(uintptr_t{1});
/// Entities wait where all are busy; see whether some may be brought here (call_from_afar()).
inline Bubble* const kLookAfar = reinterpret_cast<Bubble*>(uintptr_t{2});

constexpr uint32_t kMaxWorkers = 4096;

/// How the threads of a pool come to run.
enum class Threading : uint8_t {
  kUndecided,      ///< nothing has needed an identity yet
  kMultiplexed,    ///< on carriers, wherever there are more of them than workers
  kKernelThreads,  ///< each on its own kernel thread (kernel_threads.h)
};

/// The workers of one contention group: an initial thread and everything it opens. Worker 0 is played
/// by the initial thread's own kernel thread. Pools share nothing but the kernel's CPUs, so that a
/// stranger's endless work cannot hold up a region.
struct Pool {
  std::atomic<uint32_t> worker_count{0};  ///< grows on demand
  /// So many may a level-1 region use without asking ensure_usable(). 0: a pause is on, or was.
  std::atomic<uint32_t> usable{0};
  /// When a level-1 region asks it all the same, in cycles; of homes.cpp. A hint.
  std::atomic<uint64_t> ask_at{UINT64_MAX};
  uint32_t worker_limit = 1;  ///< PUs of the process's mask, or BOSK_WORKERS
  Thread* initial = nullptr;
  uint8_t identity_needs = 0;  ///< omp::IdentityNeeds, decided per level-1 region
  std::atomic<Threading> threading{Threading::kUndecided};  ///< can_multiplex() decides it
  /// Teams are to be placed, or nobody has found out yet whether that makes a difference here.
  std::atomic<uint8_t> placing{1};
  /// Ghosts were published here once, which alone others take, and what becomes of them. Idle workers of a
  /// pool that has only had flat teams need not look at all others: of a thousand a million looks.
  std::atomic<bool> has_had_ghosts{false};
  /// Of a group: idle workers do not poll, from a soft pause until the next level-1 region.
  std::atomic<bool> sleeps_at_once{false};
  /// Where the workers are; null: they are all equally near. Set once.
  std::atomic<const topology::Machine*> machine{nullptr};
  /// Explicit threads that its workers run; null: none. release, acquire: it is complete when seen.
  std::atomic<const EntitySource*> entities{nullptr};
  Worker* outer = nullptr;  ///< sub-pools: the worker that the thread of worker 0 is elsewhere
  base::KernelSigset base_mask = 0;  ///< of every kernel thread that plays a worker
  base::CpuMask cpus;                ///< that its workers begin with
  base::CpuMask start_cpus;          ///< where they were when they began; start_apart()
  uint64_t spin_cycles =
      0;  ///< how long an idle worker polls before it sleeps; with more workers than CPUs: not
  Rivals rivals;                    ///< who want the CPUs, too
  uint64_t wake_window_cycles = 0;  ///< Configuration::wake_window_cycles

  /// Of gangs.cpp: the gang that waits longest for workers enough.
  struct GangLine {
    std::atomic<Bubble*> first{nullptr};
    std::atomic<uint64_t> since{0};   ///< in cycles
    std::atomic<uint32_t> passed{0};  ///< turns of others that have begun since
  } gang_line;

  // Of homes.cpp. What is not atomic belongs to who has set `seating`.
  std::atomic<uint32_t> seating{0};
  std::atomic<const Seats*> seats{nullptr};         ///< null: workers are where the kernel has them
  const topology::Machine* home_machine = nullptr;  ///< that the seats are on
  std::atomic<bool> keeps_nodes{false};             ///< see keep_nodes() in homes.h
  const Seats* made_seats = nullptr;                ///< all tables, linked by `other`
  bool seats_are_told = false;                      ///< exchange_seats() has been called
  uint32_t habit_team = 0;                          ///< size of the teams that were seen last
  uint32_t habit = 0;                               ///< how many looks in a row have seen it
  uint32_t habit_needed = 0;                        ///< so many, and the seats follow

  alignas(base::kCacheLine) std::atomic<uint32_t> idle_count{0};  ///< workers with idle == 1
  std::atomic<uint32_t> parked{0};                                ///< of these, asleep
  SleeperList<base::StdAtomics> task_sleepers[kMaxWorkers / 64];  ///< of task_calls.cpp
  std::atomic<uint32_t> growing{0};                               ///< somebody makes workers
  std::atomic<uint32_t> asking{0};    ///< so many are in ensure_usable()
  Pool* group = this;                 ///< the contention group's pool; of a sub-pool another
  std::atomic<uint32_t> holders{1};   ///< its workers count as one, every sub-pool as one more
  std::atomic<uint32_t> promoted{0};  ///< threads without a role
  std::atomic<uint32_t> visitors{0};  ///< see enter_pool()
  /// Of level-1 members with an index of worker_limit or more; guarded by member_lock.
  alignas(base::kCacheLine) context::Identity** member_identities = nullptr;
  uint32_t member_identity_count = 0;
  base::SpinLock member_lock;
  Pool* next = nullptr;         ///< in the list of all pools
  Pool* before_fork = nullptr;  ///< what a forked child forgot; for leak checkers, never followed
  std::atomic<Worker*> workers[kMaxWorkers] = {};

  Worker* worker(uint32_t index) const { return workers[index].load(std::memory_order_acquire); }
};

/// For kernel threads that play no worker of the pool: before they make a thread of it ready, so that
/// its workers stay until leave_pool(), whatever the thread does. With preemption off, and not for long:
/// who frees the pool spins.
inline void enter_pool(Pool* pool) {
  // relaxed: who frees the pool comes after the thread that is made ready next.
  pool->visitors.fetch_add(1, std::memory_order_relaxed);
}
inline void leave_pool(Pool* pool) {
  // release: what was read of the pool was read before it is freed.
  pool->visitors.fetch_sub(1, std::memory_order_release);
}

}  // namespace bosk::sched
