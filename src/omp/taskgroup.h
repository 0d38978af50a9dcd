// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Taskgroups: what a task opened and waits for the end of, with all that was created inside.
#pragma once

#include <stdint.h>

#include <atomic>

#include "omp/team.h"

namespace bosk::omp {

struct MemberQueue;

struct TaskGroup {
  TaskGroup* outer = nullptr;
  uintptr_t* reductions = nullptr;  ///< arrays registered for it (omp/reduction.h)
  Task* owner = nullptr;            ///< the task that opened it, and waits at its end
  /// Unfinished tasks; both words as in omp/explicit_task_count.h. Tasks that other threads add are
  /// taken off `others`.
  std::atomic<uint64_t> mine{0};
  std::atomic<uint64_t> others{0};
  std::atomic<MemberQueue*> waiter{nullptr};
  std::atomic<bool> cancelled{false};
  bool is_workshare = false;   ///< of a worksharing construct with reductions
  WorkShare* scope = nullptr;  ///< of a `scope`: the object with the memory of its reductions
  /// A task of the group depends on one that its owner created before the group. The owner's own field.
  bool waits_for_earlier = false;
};

/// Opens a taskgroup in the task, which is the calling thread's current one.
TaskGroup* taskgroup_push(Task* task);

/// Ends the current task's innermost taskgroup: waits for all tasks in it.
void taskgroup_end();

/// Cancels the innermost taskgroup that the program opened (not one of a worksharing construct).
void cancel_taskgroup(Task* task);

/// Whether the innermost taskgroup, or one around it, was cancelled.
inline bool taskgroup_cancelled(const Task* task) {
  for (const TaskGroup* group = task->group; group != nullptr; group = group->outer)
    if (group->cancelled.load(std::memory_order_relaxed)) return true;
  return false;
}
/// Tasks of this parent are to be dropped: its region or a taskgroup around was cancelled.
inline bool tasks_cancelled(const Task* parent) {
  return BOSK_UNLIKELY(parent->team->cancelled.load(std::memory_order_relaxed) != 0) ||
         taskgroup_cancelled(parent);
}

/// A task is created in the group by `creator`, the calling thread's current task.
void group_add(TaskGroup* group, const Task* creator);
/// A task of the group has finished. `on`: the task whose own thread calls, if that is the owner.
void group_done(TaskGroup* group, const Task* on);
/// A task of the group was queued: if the owner sleeps, it may be the only one who can run it.
void group_queued(TaskGroup* group, const Task* creator);

}  // namespace bosk::omp
