// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams: parallel regions as bubbles; fork, join and barrier.
#pragma once

#include <stdint.h>

#include <atomic>

#include "context/switch.h"
#include "context/thread_block.h"
#include "omp/icv.h"
#include "omp/load_meter.h"
#include "omp/loads.h"
#include "omp/task.h"
#include "omp/task_queue.h"
#include "omp/team_home.h"
#include "omp/workshare.h"
#include "sched/bubble.h"
#include "sched/thread.h"

namespace bosk::omp {

struct GuestTexts;  // guest_texts.h

using RegionFunction = void (*)(void*);

/// What the program could notice about the identities of ghosts (context/observers.h).
enum class IdentityNeeds : uint8_t {
  kRelaxed,    ///< nothing: ghosts share the identity of the thread that runs them
  kStrict,     ///< every ghost needs an identity of its own until the team ends
  kOwnStacks,  ///< and must run on the stack that belongs to it
};

/// What the threads share that one initial thread gave rise to; kept by the team at their root.
struct ContentionGroup {
  std::atomic<LoadBook*> loads{nullptr};     ///< what was told of its members' loads; null: nothing
  std::atomic<MemoryBook*> memory{nullptr};  ///< what was attached to its teams; null: nothing
  std::atomic<RelationBook*> relations{nullptr};  ///< what was told of these; null: nothing
  // Of the league that its teams construct made; written while no region of the group is open.
  uint32_t team_num = 0;
  uint32_t num_teams = 1;
  uint32_t outer_thread_limit = 0;
  bool in_league = false;
  std::atomic<uint32_t> threads_in_use{1};  ///< counted for thread-limit-var

  void reset() {
    team_num = 0;
    num_teams = 1;
    in_league = false;
    threads_in_use.store(1, std::memory_order_relaxed);
  }
};

/// One parallel region. Fields above the line are written by the opener before the members start and
/// read-only until the join. Recycled per worker (hot): what the worksharing and task code keep in
/// it must be back in its initial state when the region ends.
struct Team : sched::Bubble {
  RegionFunction function = nullptr;
  void* data = nullptr;
  Task* opener_task = nullptr;     ///< the task that met the construct
  DataIcvs icvs{};                 ///< of every implicit task of the team
  context::FloatControl floats{};  ///< the opener's; every member starts with it
  uint16_t level = 0;              ///< omp_get_level
  uint16_t active_level = 0;       ///< omp_get_active_level
  uint32_t opener_index = 0;       ///< thread number of the opener in the parent team
  // OpenMP places: the opener's partition (first place, count) and place; count 0: no places.
  uint32_t partition_first = 0;
  uint32_t partition_count = 0;
  uint32_t opener_place = 0;
  Bind bind = Bind::kFalse;   ///< how the members are laid over the partition
  uint32_t native_count = 0;  ///< members 0 .. native_count-1 run on native threads
  IdentityNeeds needs = IdentityNeeds::kRelaxed;
  void* opened_by_call = nullptr;  ///< of GOMP_parallel_start
  /// What close_region() has to see to, as bits.
  static constexpr uint8_t kCountsThreads = 1;  ///< against thread-limit-var
  static constexpr uint8_t kIsShown = 2;        ///< open_teams.h; set by members, too
  std::atomic<uint8_t> at_end{0};
  bool shows_affinity = false;  ///< its members tell where they run (OMP_DISPLAY_AFFINITY)
  /// At level 0: the thread is, on the host, a member of an active region (it runs a target region there).
  bool inside_region = false;

  /// What is known of the members' loads; null: nothing. Members that are the first to tell anything set
  /// it, all to the same.
  std::atomic<TeamLoads*> loads{nullptr};
  std::atomic<GuestTexts*> guest_texts{nullptr};  ///< null: no guest has asked for any
  GhostOrder ghost_order;                         ///< memory for Bubble::order
  /// While a region is metered: whose time its members spend; with meters_members, of the first one.
  sched::Account account;
  bool meters_members = false;
  // While regions are sampled (region_counts.h).
  RegionFunction numbered = nullptr;  ///< the function that Bubble::region is the number of
  uint64_t region_opened_at = 0;      ///< cycles; 0: it is not timed

  // ---- changed while the region runs
  alignas(base::kCacheLine) std::atomic<uint64_t> single_taken{
      0};  ///< `single` constructs given away
  std::atomic<uint32_t> cancel_bits{
      0};  ///< GOMP_cancel `which` bits in force: 1 parallel, 2 loop, 4 sections
  void* copyprivate = nullptr;  ///< published by the executor before a barrier
  WorkShareState workshares;    ///< omp/workshare.h
  TaskQueueState tasks;         ///< omp/task_queue.h

  // ---- written by the opener, where teams are placed
  TeamHome home_on_machine;

  ContentionGroup contention;  ///< at level 0
};

inline uint32_t region_of(const Team* team) { return team->region.load(std::memory_order_relaxed); }

inline Team* parent_team(const Team* team) {
  return static_cast<Team*>(team->parent.load(std::memory_order_relaxed));
}

/// The team of the initial thread at the root of the nest, as far as the program can see: on a device it
/// is the target region's.
template <typename T>
T* root_team(T* team) {
  while (team->level != 0) team = parent_team(team);
  return team;
}

/// Frees what `depend` clauses of the task's children left behind.
void free_dependences(Task* task);

/// The calling thread; makes a record for a pthread that calls the runtime for the first time.
/// Never null, except when memory is out (one line, exit).
sched::Thread* attach_thread();
inline sched::Thread* current_thread() {
  sched::Thread* me = context::self();
  return BOSK_LIKELY(me != nullptr) ? me : attach_thread();
}
inline Task* current_task() { return current_thread()->task; }
inline ImplicitTask* current_member() { return current_thread()->member; }

/// Runs fn(data) as a region: num_threads 0 means no clause; proc_bind_clause 0 none. Returns when
/// all members and all their tasks have ended.
/// `prepare` (may be null) is called by the opener after the team is complete and before any member
/// starts (combined constructs set up their worksharing construct there).
void parallel(RegionFunction fn, void* data, uint32_t num_threads, uint32_t proc_bind_clause,
              void (*prepare)(Team* team, void* argument) = nullptr, void* argument = nullptr);

/// The old two-call protocol: begin returns with the caller as member 0.
void parallel_begin(RegionFunction fn, void* data, uint32_t num_threads,
                    void (*prepare)(Team*, void*) = nullptr, void* argument = nullptr);
void parallel_end();

/// Barrier of the innermost team; a task scheduling point: when it opens all tasks that the team's
/// members created before are complete. No-op in a team of one, apart from the tasks.
void barrier();

/// As barrier(), for constructs that can be cancelled: true if the parallel region was cancelled,
/// whereupon members leave without meeting. cancel_parallel() lets the waiting ones go.
bool barrier_cancellable();
void cancel_parallel(Team* team);

/// Called after work that any waiting member of the team may do was queued (bubble->queued_work is
/// set inside): wakes a member or worker if some are asleep or suspended. Cheap when none is.
void note_team_work(Team* team);

/// The ICVs of the current task, copied first if it still shares its team's: for omp_set_*.
DataIcvs* own_icvs(Task* task);

}  // namespace bosk::omp
