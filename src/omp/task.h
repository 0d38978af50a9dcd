// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks: what every piece of executing OpenMP code has, implicit or explicit.
#pragma once

#include <stdint.h>

#include <atomic>

#include "omp/icv.h"

namespace bosk::omp {

struct Team;
struct TaskGroup;
struct WorkShare;
struct DependenceTable;
struct MemberQueue;

/// Common part of implicit and explicit tasks. The thread that executes the task owns it; other
/// threads touch only `completed` and `waiter` (docs/design/tasks.md).
struct Task {
  Task* parent = nullptr;  ///< creating task; of an implicit task: the task that opened the region
  Team* team = nullptr;    ///< never null: outside of regions the initial team of one
  const DataIcvs* icvs =
      nullptr;                 ///< the team's or parent's until the task changes one (own_icvs())
  TaskGroup* group = nullptr;  ///< innermost taskgroup that encloses the task's present point
  /// Of its children, by address; null until the first `depend`, of a member until it first needs a
  /// queue for tasks. Not null at a member's end: free_dependences().
  DependenceTable* dependences = nullptr;
  /// Child tasks that are not complete, as far as the owner has heard: bits 0..31 children whose
  /// function has not finished (taskwait waits for these), bits 32..63 children that are not
  /// finished or that have live children themselves (barriers wait for these). Written by the owner
  /// only, with plain stores: a child that ends on the owner's thread costs no read-modify-write.
  /// Zero is exact.
  std::atomic<uint64_t> children{0};
  /// What other threads have to subtract from `children`, and what state the task is in; see
  /// omp/explicit_task_count.h. Zero whenever the task runs and `children` is zero.
  std::atomic<uint64_t> completed{0};
  bool is_implicit = false;
  bool final_task = false;  ///< omp_in_final
  bool owns_icvs = false;   ///< icvs points to a private copy that the task frees at its end
  std::atomic<uint32_t> waiter{
      0};  ///< number of the queue whose owner waits for children; constant
};

/// The task of one member of a team. It lives on the stack of the context that runs the member (of
/// an initial thread: in its Thread), so ghosts cost no memory.
struct ImplicitTask : Task {
  // Not constexpr, so that compilers store the fields that matter one by one: the block fill that they
  // make of a constant costs more than all else that starts a ghost.
  ImplicitTask() {}
  uint32_t index = 0;              ///< omp_get_thread_num
  uint64_t singles = 0;            ///< `single` constructs met in this team
  uint64_t barriers = 0;           ///< barriers met in this team
  WorkShare* workshare = nullptr;  ///< the one it is in, or was in last
  // What the thread is handed next from its loop; the worksharing code owns the meaning. All zero
  // outside of loops: members of a combined construct ask for their next chunk without a start.
  uint64_t loop_state[4] = {};
  MemberQueue* queue = nullptr;  ///< its tasks; null until it needs one (omp/task_queue_member.h)
};

}  // namespace bosk::omp
