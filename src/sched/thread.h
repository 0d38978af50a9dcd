// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The user-level thread: a stack, the identity it runs under, and its place in the scheduler.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "context/identity.h"
#include "context/thread_block.h"
#include "sched/entity.h"
#include "sched/meter.h"

namespace bosk::omp {
struct Task;
struct ImplicitTask;
struct OpenMember;
struct RegionBook;
}  // namespace bosk::omp

namespace bosk::sched {

struct Bubble;
struct ExplicitThread;
struct Pool;
struct Serving;
struct Worker;

enum class ThreadKind : uint8_t {
  kCarrier,  ///< donor identity; runs the scheduler's loop, and ghosts on top of it
  kNative,   ///< a worker's own POSIX identity: level-1 members; runs on that kernel thread only
  kInitial,  ///< main or any pthread that called in; runs on its own kernel thread only
};

/// What a carrier has been switched to for, instead of looking for work.
enum class Errand : uint8_t {
  kNone,
  kGhost,   ///< to run the ghost in `assigned`
  kEntity,  ///< to start the explicit thread in `entity`
};

/// What makes a switch from or to a thread more than a switch; note_switch() sees to it.
enum SwitchNote : uint8_t {
  kIsEntity = 1,  ///< it is the context of the explicit thread in `entity`
  kInTick =
      2,  ///< it goes on by returning from a tick's handler, to which nothing of the program's may happen
  kOwnMask = 4,      ///< its signal mask is `mask`, not that of its pool
  kAsksCpuTime = 8,  ///< cpu_clock.h
};

/// Of a thread that asks for it, in ns: that of the kernel thread plus `base`, modulo 2^64.
struct CpuTime {
  uint64_t base = 0;
  uint64_t value = 0;  ///< when it left a kernel thread
  int tid = 0;         ///< the kernel thread; 0: none now
};

/// Everything that can be switched to. Owned by the worker that runs it, by the holder (run queue,
/// barrier group, address-wait bucket, join) it waits in, or by the free pool.
///
/// What every switch touches is in the first two cache lines: a team of 64 that meets in a barrier
/// touches as many records, and the first-level cache has 512 lines.
struct alignas(base::kCacheLine) Thread : Entity {
  ThreadKind thread_kind = ThreadKind::kCarrier;
  Errand errand = Errand::kNone;
  uint8_t notes = 0;             ///< for who switches: SwitchNote
  void* sp = nullptr;            ///< valid while it does not run
  uintptr_t thread_pointer = 0;  ///< of `identity`
  Worker* worker = nullptr;      ///< that runs it, or ran it last; null: promoted
  Worker* pinned = nullptr;      ///< the only worker that may run it; null: any of the pool

  Thread* link = nullptr;               ///< next in the list of the holder it is in
  Bubble* bubble = nullptr;             ///< whose member it runs now
  omp::Task* task = nullptr;            ///< the OpenMP task it executes
  omp::ImplicitTask* member = nullptr;  ///< the team member on whose behalf
  Serving* serving = nullptr;  ///< ghosts that it runs one after the other, innermost team first
  context::Identity* identity =
      nullptr;              ///< installed when it runs; may change from ghost to ghost: run_as()
  Pool* pool = nullptr;     ///< contention group; null: never opened a region
  uint32_t times_left = 0;  ///< switches away from it, for the report
  uint32_t place = 0;       ///< OpenMP place that it is bound to, plus 1; 0: none

  context::Identity* own = nullptr;  ///< the identity it was made with (its stack belongs to it)
  Worker* last_worker = nullptr;     ///< where a promoted thread goes back to
  /// Ghosts may be run on this thread's stack while it is on it, in the `serve_room` bytes from here up: each member
  /// is promised OMP_STACKSIZE, so what the thread itself uses must be a trifle. Elsewhere it is on a stack of the
  /// program's making (a coroutine's, a signal handler's), whose size nobody knows.
  uintptr_t serve_floor = 0;
  uintptr_t serve_room = 0;
  uintptr_t serve_room_if_grown =
      0;                        ///< what it will be when the kernel has given main that much stack
  base::KernelSigset mask = 0;  ///< while kOwnMask is noted
  void* layer_data = nullptr;   ///< of the layer above, for initial threads
  omp::OpenMember* open_members = nullptr;  ///< those that the report measures, innermost first
  // Opened and passed by it so far: the numbers of level-1 and flat regions and of flat teams' barriers,
  // in whatever pool they ran. 64 bits: at one a nanosecond, 584 years.
  uint64_t flat_regions = 0;
  uint64_t flat_barriers = 0;

  const void* wait_address = nullptr;  ///< in an address-wait bucket
  void* wait_state = nullptr;          ///< of a native wait (the condition knows)
  Bubble* assigned = nullptr;          ///< carrier: the ghost it must run next, on its own stack
  uint32_t assigned_index = 0;
  ExplicitThread* entity = nullptr;  ///< that it runs, or is to start (entity_source.h)
  bool assigned_persistent = false;  ///< the carrier belongs to a level-1 member
  uint64_t wait_value = 0;           ///< of what it waits for; the waiting code knows
  // Of the preemption handler (spins/).
  uintptr_t tick_pc = 0;    ///< where the last tick found it
  uint64_t spin_state = 0;  ///< its registers when it was found to spin last; 0: it never was
  uint32_t ticks = 0;       ///< that have met it
  uint32_t slice_ns = 0;    ///< it has now, where its team polls; 0: an ordinary one
  uint8_t probe_pause = 0;  ///< ticks that will not look closer
  uint8_t next_probe_pause = 0;
  uint8_t sleeps_in_kernel =
      0;  ///< its next short sleeps that give no turn to others (abi/libc/sleep.cpp)
  uint8_t yields_in_kernel = 0;    ///< … and its next yields (abi/libc/yield.cpp)
  std::atomic<uint32_t> doing{0};  ///< for the report: doing.h
  CpuTime cpu_time;                ///< while kAsksCpuTime is noted
  Account account;                 ///< whose time it spends, while a region is metered (meter.h)

  bool is_entity() const { return (notes & kIsEntity) != 0; }
  void note(SwitchNote what, bool holds) {
    notes = static_cast<uint8_t>(holds ? notes | what : notes & ~what);
  }

  /// release: a pause may look at those of initial threads, and at their depth; they may be new.
  void set_bubble(Bubble* other) {
    std::atomic_ref(bubble).store(other, std::memory_order_release);
  }
  /// It runs under `identity` when it is switched to next.
  void run_as(context::Identity* other) {
    identity = other;
    thread_pointer = other->thread_pointer;
  }
};

}  // namespace bosk::sched
