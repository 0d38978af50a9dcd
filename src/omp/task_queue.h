// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queues of explicit tasks of a team, and the hooks that barriers and waits call.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/spinlock.h"

namespace bosk::sched {
struct Thread;
}

namespace bosk::omp {

struct Team;
struct ImplicitTask;
struct MemberQueue;
struct QueueList;
struct SharedTasks;

/// Part of every Team; all null until the team's first task, and without tasks when the region
/// ends. The queues stay with the team for its next region.
struct TaskQueueState {
  TaskQueueState() = default;
  TaskQueueState(const TaskQueueState&) = delete;
  TaskQueueState& operator=(const TaskQueueState&) = delete;
  ~TaskQueueState();  ///< when no thread can look at the team any more

  /// Every queue that a member of the team ever had; for thieves.
  std::atomic<QueueList*> queues{nullptr};
  /// Tasks that any member may take: with a priority, or released by another thread than the one
  /// that waits for them.
  std::atomic<SharedTasks*> shared{nullptr};
  std::atomic<uint32_t> shared_count{0};
  /// Members that are blocked in a task wait and would like to hear of any new task.
  std::atomic<uint32_t> sleepers{0};

  base::SpinLock lock;                 ///< guards what follows; preemption is off while it is held
  MemberQueue* free_queues = nullptr;  ///< of members that have ended
  MemberQueue* first_sleeper = nullptr;
};

/// Called by a member at a barrier and at the region's end, only if its `children` word is not
/// zero: returns when all tasks that it created, and theirs, are complete. Runs tasks meanwhile.
void drain_member_tasks(sched::Thread* me, ImplicitTask* member);

/// Called by a member that waits in a barrier: runs one queued task of the team, if there is one
/// that the member may run. False: there was none; Team::queued_work is zero then, unless tasks
/// were queued meanwhile. `patient`: the caller looks between two calls whether its wait is over; true may
/// then also mean that the member had better call again in a moment.
bool run_one_team_task(sched::Thread* me, Team* team, bool patient = false);

/// In a forked child: no other thread is left that could hold a lock or that sleeps. `team`: the
/// calling thread's.
void task_queues_forget_after_fork(Team* team);

}  // namespace bosk::omp
