// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Explicit tasks: run-to-completion closures with their data. See docs/design/tasks.md.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "omp/explicit_task_count.h"
#include "omp/task.h"
#include "omp/task_queue_member.h"
#include "omp/team.h"

namespace bosk::omp {

struct DependenceNode;

using TaskFunction = void (*)(void*);
using TaskCopyFunction = void (*)(void*, void*);

/// Only some tasks have these: they lie between the task and its data.
struct TaskExtras {
  DependenceNode* node = nullptr;   ///< `depend`: whom the task's end releases
  std::atomic<uint32_t> event{0};   ///< `detach`: EventBits
  std::atomic<uint32_t> waiter{0};  ///< `detach`: queue of the thread that waits for it
};

enum EventBits : uint32_t {
  kBodyHasRun = 1,      ///< the task's function has returned
  kEventFulfilled = 2,  ///< omp_fulfill_event was called
  kCreatorWaits = 4,    ///< an undeferred task: its creator completes it, and waits for the event
};

/// A task from its creation until it and all its descendants have ended. Lives in TaskMemory:
/// thieves may read `origin`, `depth` and `group` of a task that has been recycled meanwhile, so
/// these are written atomically.
struct ExplicitTask : Task {
  enum Flags : uint8_t {
    kHasExtras = 1,
    kCopiedByProgram = 2,  ///< its function destroys the copies: it runs even if cancelled
    kDetached = 4,
    kOwnData = 8,  ///< data came from malloc
    kUndeferred = 16,
    kUncounted = 32,  ///< its taskgroup does not wait for it: for the task around it
  };
  std::atomic<uintptr_t> origin{0};  ///< parent; bit 0: the parent is an implicit task
  TaskFunction function = nullptr;
  void* data = nullptr;
  std::atomic<uint32_t> depth{0};  ///< explicit ancestors, itself included
  uint16_t priority = 0;
  uint8_t flags = 0;

  TaskExtras* extras() { return reinterpret_cast<TaskExtras*>(this + 1); }
  DependenceNode* node() { return (flags & kHasExtras) != 0 ? extras()->node : nullptr; }

  /// While it is queued in a list a task has no children: their word is the link.
  ExplicitTask* link() const { return reinterpret_cast<ExplicitTask*>(own_count(children)); }
  void set_link(ExplicitTask* next) {
    children.store(reinterpret_cast<uintptr_t>(next), std::memory_order_relaxed);
  }
};
static_assert(sizeof(ExplicitTask) <= 96, "a task with 32 bytes of data shall fit two cache lines");
static_assert(sizeof(TaskExtras) == 16);

/// Explicit ancestors-or-self of any task.
inline uint32_t depth_of(const Task* task) {
  return task->is_implicit
             ? 0
             : static_cast<const ExplicitTask*>(task)->depth.load(std::memory_order_relaxed);
}

/// Whether `task` was created by `ancestor` (of depth `ancestor_depth`) or one of its descendants.
/// `task` may be recycled meanwhile: then the answer means nothing, but nothing outside of task
/// memory is read (implicit tasks, which live on stacks, are compared and never looked into).
inline bool is_descendant(const ExplicitTask* task, const Task* ancestor, uint32_t ancestor_depth) {
  uint32_t depth = task->depth.load(std::memory_order_relaxed);
  while (depth > ancestor_depth) {
    const uintptr_t origin = task->origin.load(std::memory_order_relaxed);
    const auto* parent = reinterpret_cast<const Task*>(origin & ~uintptr_t{1});
    if (parent == ancestor) return true;
    if ((origin & 1) != 0) return false;
    task = static_cast<const ExplicitTask*>(parent);
    const uint32_t above = task->depth.load(std::memory_order_relaxed);
    if (above >= depth) return false;  // only in a recycled chain; and so the loop ends
    depth = above;
  }
  return false;
}

inline TaskGroup* group_hint(ExplicitTask* task) {
  return std::atomic_ref<TaskGroup*>(task->group).load(std::memory_order_relaxed);
}

/// What `task` and the like ask for. The flag bits are GOMP_task's (gomp-abi.md §7).
enum TaskFlags : uint32_t {
  kTaskUntied = 0x1,
  kTaskFinal = 0x2,
  kTaskMergeable = 0x4,
  kTaskDepend = 0x8,
  kTaskPriority = 0x10,
  kTaskUp = 0x100,
  kTaskGrainsize = 0x200,
  kTaskIf = 0x400,
  kTaskNogroup = 0x800,
  kTaskReduction = 0x1000,
  kTaskDetach = 0x2000,
  kTaskStrict = 0x4000,
  // Ours, above what compilers pass:
  kTaskPlainCopy = 0x10000,  ///< its data need no destructor, though a function copies them
};

struct TaskRequest {
  TaskFunction function;
  void* data;
  TaskCopyFunction copy;
  size_t bytes;
  size_t alignment;
  bool deferrable;  ///< the if clause is true
  uint32_t flags;   ///< TaskFlags; of these only the ones that concern a single task
  void** depend;    ///< only with kTaskDepend
  int priority;     ///< only with kTaskPriority
  void* event;      ///< only with kTaskDetach: where the handle goes
  /// taskloop: written over the first two words of the task's data, after the copy.
  const uint64_t* bounds;
};

/// Creates a task, and runs it at once where it must not or cannot be deferred.
void create_task(const TaskRequest& request);

/// The common case of create_task(): nothing but a function and data that may be copied byte by
/// byte, in a queue with room or to be run at once. False: it is not that case, and nothing was
/// done.
bool create_plain_task(TaskFunction function, void* data, size_t bytes, size_t alignment,
                       bool deferrable);

// Tasks that run at once, one after the other, inside of a task that stands for them all. They share a
// record as long as none leaves children behind.

/// The record for such tasks of the current task, which counts it as one child.
ExplicitTask* make_serial_task(MemberQueue* queue, Task* parent, size_t bytes, size_t alignment);
/// Runs it with what is in its data. True: the record can be used again; false: it has gone.
bool run_serial_task(sched::Thread* me, MemberQueue* queue, ExplicitTask* task);
void end_serial_tasks(MemberQueue* queue, ExplicitTask* task);

/// Runs a task and its end, then what its end made ready, one after the other: brothers of the task
/// if `waits_in` is their parent and waits in the caller's loop, others only if `keep`. `waits_in`
/// is null if the loop is not that of the task's own thread.
void run_task(sched::Thread* me, MemberQueue* queue, ExplicitTask* task, Task* waits_in, bool keep);

/// Runs children of the current task while one is at hand in its own queue. True: there are no
/// more.
bool run_own_children(sched::Thread* me, MemberQueue* queue);

/// The task is ready: its last predecessor has ended. `queue`: of the calling thread, or null.
void queue_released_task(MemberQueue* queue, ExplicitTask* task, bool local);

/// omp_fulfill_event.
void fulfill_event(uintptr_t handle);

// ---- waiting (explicit_task_wait.cpp)

/// Until those children of the current task have ended that one with these dependences comes after.
void wait_for_dependences(void** depend);

/// Until the children of the current task have finished.
void taskwait(sched::Thread* me);
/// Until the current task's taskgroup has no unfinished task.
void wait_for_group(sched::Thread* me, TaskGroup* group);
/// Until the predecessors of the node have ended.
void wait_for_node(sched::Thread* me, DependenceNode* node);
/// Until the event of an undeferred task is fulfilled.
void wait_for_event(sched::Thread* me, ExplicitTask* task);
/// Runs one queued descendant of the current task, if there is one.
bool run_one_descendant(sched::Thread* me);

}  // namespace bosk::omp
