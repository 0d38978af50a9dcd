// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queue that a member of a team needs once it creates tasks or waits for them.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/atomics_policy.h"
#include "base/cpu.h"
#include "omp/dependences.h"
#include "omp/explicit_task_memory.h"
#include "omp/steal_pace.h"
#include "omp/task.h"
#include "omp/task_queue_signals.h"
#include "omp/team.h"
#include "sched/task_deque.h"
#include "sched/thread.h"

namespace bosk::omp {

struct ExplicitTask;
struct TaskGroup;

/// Owned by one member: its tasks, its memory for them, and where it sleeps. Never freed, only
/// handed on to other members and teams, so that a late thief or waker does no harm.
struct alignas(base::kCacheLine) MemberQueue {
  sched::TaskDeque<base::StdAtomics, ExplicitTask> deque;
  TaskMemory memory;
  DependenceTable table;  ///< of the member's implicit task
  TaskGroup* free_groups = nullptr;
  DependenceTable* free_tables = nullptr;
  bool may_hold_orphans = false;  ///< a task that was run here ended before its children
  uint32_t number = 0;            ///< find_queue(number) == this; from 1
  uint32_t place = 0;             ///< in the team's list of queues
  uint32_t last_victim = 0;       ///< where the last steal succeeded
  uint64_t steals_since = 0;      ///< cycles, 0: it never stole; with place_until see queue_list.h
  uint64_t place_until = 0;
  StealPace pace;
  uint32_t limit = 0;  ///< so many queued tasks, and new ones run at once
  Team* team = nullptr;
  MemberQueue* next_free = nullptr;

  /// What the owner sleeps on; whoever has news for it adds one (poke()).
  alignas(base::kCacheLine) std::atomic<uint32_t> news{0};
  bool is_sleeper = false;  ///< in the team's list; guarded by the team's task lock
  MemberQueue* next_sleeper = nullptr;
};

MemberQueue* find_queue(uint32_t number);

MemberQueue* acquire_queue(ImplicitTask* member);
inline MemberQueue* queue_of(ImplicitTask* member) {
  return BOSK_LIKELY(member->queue != nullptr) ? member->queue : acquire_queue(member);
}
/// The member ends. Its queue is empty.
void release_queue(ImplicitTask* member);

/// Tells the owner of the queue, if it sleeps, to look again.
void poke(MemberQueue* queue);
inline void poke_number(uint32_t number) {
  if (BOSK_UNLIKELY(number != 0)) poke(find_queue(number));
}

// ---- finding tasks

/// Which tasks a waiting thread may start (OpenMP's task scheduling constraint).
struct Eligible {
  const Task* ancestor = nullptr;     ///< null: any of the team
  uint32_t depth = 0;                 ///< of `ancestor`
  const TaskGroup* not_in = nullptr;  ///< not those that are in this taskgroup itself

  bool operator()(ExplicitTask* task) const;
};

/// A queued task that may be started, or null. `queue`: the caller's own, may be null if any task
/// is eligible (then one is acquired when there is more than one to take).
ExplicitTask* take_task(sched::Thread* me, Team* team, MemberQueue* queue,
                        const Eligible& eligible);

/// How many tasks are queued, up to `most`; a guess unless the caller made its own wait known first.
uint32_t queued_tasks(const Team* team, uint32_t most);
inline bool has_queued_tasks(const Team* team) { return queued_tasks(team, 1) != 0; }

/// Queues for all members, in order of priority.
void push_shared(Team* team, ExplicitTask* task);
/// The first of highest priority that is eligible, or null.
ExplicitTask* take_shared(Team* team, const Eligible& eligible);

/// After a push: members that wait learn of it. The light half of an asymmetric fence: those who go
/// to sleep, or declare the queues empty, pay for the heavy half.
void tell_team_slow(Team* team);
inline void tell_team(Team* team) {
  if (BOSK_UNLIKELY(must_set_work_flag<base::StdAtomics>(team->queued_work) ||
                    team->tasks.sleepers.load(std::memory_order_relaxed) != 0))
    tell_team_slow(team);
}

void add_sleeper(Team* team, MemberQueue* queue);
void remove_sleeper(Team* team, MemberQueue* queue);

}  // namespace bosk::omp
