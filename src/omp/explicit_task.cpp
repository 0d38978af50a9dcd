// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Explicit tasks from their creation to their end.
#include "omp/explicit_task.h"

#include <stdlib.h>
#include <string.h>

#include <new>

#include "base/assert.h"
#include "base/message.h"
#include "omp/dependences.h"
#include "omp/environment.h"
#include "omp/exception_globals.h"
#include "omp/taskgroup.h"

namespace bosk::omp {
namespace {

size_t round_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// More children than this, and their creator looks at what others ended each time.
constexpr uint32_t kManyChildren = 1u << 20;

/// The record of a new task, with room for its extras, a snapshot of ICVs and its data.
struct Shape {
  bool extras;
  bool icvs;     ///< the parent has ICVs of its own, which it may change or free
  size_t bytes;  ///< of data; 0: the data stays where it is
  size_t alignment;
};

/// What a new task has from its parent. Free tasks have no children, no table and no ICVs of their
/// own (free_task()).
inline void inherit(ExplicitTask* task, Task* parent) {
  task->parent = parent;
  task->team = parent->team;
  task->icvs = parent->icvs;
  std::atomic_ref<TaskGroup*>(task->group).store(parent->group, std::memory_order_relaxed);
  task->final_task = parent->final_task;
  // A task is no longer found in queues when it is recycled, so the order of these does not matter.
  task->origin.store(reinterpret_cast<uintptr_t>(parent) | (parent->is_implicit ? 1 : 0),
                     std::memory_order_relaxed);
  task->depth.store(depth_of(parent) + 1, std::memory_order_relaxed);
  task->priority = 0;
  task->flags = 0;
}

ExplicitTask* make_task(MemberQueue* queue, Task* parent, const Shape& shape) {
  size_t at = sizeof(ExplicitTask) + (shape.extras ? sizeof(TaskExtras) : 0);
  const size_t icvs_at = at;
  if (BOSK_UNLIKELY(shape.icvs)) at += round_up(sizeof(DataIcvs), 8);
  const size_t data_at = shape.alignment > 8 ? round_up(at, shape.alignment) : at;
  uint32_t size_class = TaskMemory::task_class(data_at + shape.bytes);
  const bool outside =
      BOSK_UNLIKELY(size_class == TaskMemory::kClasses || shape.alignment > base::kCacheLine);
  if (outside) size_class = TaskMemory::task_class(at);
  bool fresh;
  void* memory = queue->memory.take(size_class, &fresh);
  auto* task =
      BOSK_UNLIKELY(fresh) ? new (memory) ExplicitTask : static_cast<ExplicitTask*>(memory);
  inherit(task, parent);
  char* base = reinterpret_cast<char*>(task);
  if (shape.extras) {
    new (base + sizeof(ExplicitTask)) TaskExtras;
    task->flags = ExplicitTask::kHasExtras;
  }
  if (BOSK_UNLIKELY(shape.icvs)) task->icvs = new (base + icvs_at) DataIcvs(*parent->icvs);
  if (!outside) {
    task->data = base + data_at;
    return task;
  }
  task->data = nullptr;
  if (shape.bytes == 0) return task;
  const size_t alignment = shape.alignment > sizeof(void*) ? shape.alignment : sizeof(void*);
  if (posix_memalign(&task->data, alignment, shape.bytes) != 0)
    base::gomp_fatal("Out of memory allocating %zu bytes", shape.bytes);
  task->flags |= ExplicitTask::kOwnData;
  return task;
}

void free_task(MemberQueue* queue, ExplicitTask* task) {
  BOSK_ASSERT(own_count(task->children) == 0 && task->completed.load() == 0 &&
              task->dependences == nullptr && !task->owns_icvs);
  if (BOSK_UNLIKELY((task->flags & ExplicitTask::kOwnData) != 0)) free(task->data);
  TaskMemory::give(queue != nullptr ? &queue->memory : nullptr, task);
}

void copy_data(sched::Thread* me, ExplicitTask* task, const TaskRequest& request) {
  if (BOSK_UNLIKELY(request.copy != nullptr)) {
    // Copy constructors are the new task's code, as far as they can ask.
    Task* outer = me->task;
    me->task = task;
    request.copy(task->data, request.data);
    me->task = outer;
    if ((request.flags & kTaskPlainCopy) == 0) task->flags |= ExplicitTask::kCopiedByProgram;
  } else if (request.bytes == 16) {
    memcpy(task->data, request.data, 16);
  } else if (request.bytes == 24) {
    memcpy(task->data, request.data, 24);
  } else if (request.bytes != 0) {  // else there may be no data, and memcpy takes no null pointer
    memcpy(task->data, request.data, request.bytes);
  }
  if (request.bounds != nullptr) memcpy(task->data, request.bounds, 2 * sizeof(uint64_t));
}

// ---- ends

/// The last descendant of a task that had ended before it has ended: the task is complete, and so
/// may be its parent.
void end_finished_ancestors(MemberQueue* queue, ExplicitTask* task) {
  for (;;) {
    Task* parent = task->parent;
    free_task(queue, task);
    const auto added = add_for_owner(parent->completed, parent->waiter, kEndedDescendants);
    if (added.others != 0) {
      poke_number(added.to_wake);
      return;
    }
    task = static_cast<ExplicitTask*>(parent);
  }
}

void tell_parent(MemberQueue* queue, Task* parent, uint64_t what, bool local) {
  if (BOSK_LIKELY(local)) {
    own_add(parent->children, -what);
    return;
  }
  const auto added = add_for_owner(parent->completed, parent->waiter, what);
  if (BOSK_UNLIKELY(added.others == 0))
    end_finished_ancestors(queue, static_cast<ExplicitTask*>(parent));
  else
    poke_number(added.to_wake);
}

/// What the end of a task releases: the first goes on in the caller, the others are queued.
struct Released {
  MemberQueue* queue;
  bool local;
  bool keep;  ///< the caller takes the first
  ExplicitTask* first = nullptr;
};

void take_released(void* argument, ExplicitTask* task) {
  auto* released = static_cast<Released*>(argument);
  if (released->keep && released->first == nullptr && task->priority == 0)
    released->first = task;
  else
    queue_released_task(released->queue, task, released->local);
}

/// The task's function has returned, or was left out, and its event is fulfilled. `local_parent`:
/// its parent, if the calling thread is the parent's. Returns a task that became ready, for the
/// caller to run next: a brother is what a waiting parent waits for; of others' tasks only if
/// `keep`.
///
/// Order: successors are queued before the parent can learn of the end, so that a parent that is
/// woken by it finds them (and is still there); the parent comes last, because with its last child
/// the team may end.
ExplicitTask* complete_task(MemberQueue* queue, ExplicitTask* task, Task* local_parent, bool keep) {
  Task* parent = task->parent;
  const bool local = parent == local_parent;
  Released released{queue, local, keep || local};
  if (BOSK_UNLIKELY((task->flags & ExplicitTask::kHasExtras) != 0))
    if (DependenceNode* node = task->node()) end_node(queue, node, take_released, &released);
  if (BOSK_UNLIKELY(task->group != nullptr && (task->flags & ExplicitTask::kUncounted) == 0))
    group_done(task->group, local ? parent : nullptr);
  const uint64_t left = collect(task->children, task->completed);
  if (BOSK_LIKELY(left == 0)) {
    free_task(queue, task);
    tell_parent(queue, parent, kWholeChild, local);
    return released.first;
  }
  // It ends for its parent's taskwait now, altogether with its last descendant.
  if (queue != nullptr) queue->may_hold_orphans = true;
  tell_parent(queue, parent, kFinishedChild, local);
  task->children.store(0, std::memory_order_relaxed);
  if (finish_before_children(task->completed, left)) end_finished_ancestors(queue, task);
  return released.first;
}

void free_private_parts(MemberQueue* queue, ExplicitTask* task) {
  if (task->dependences != nullptr) {
    free_table(queue, task->dependences);
    task->dependences = nullptr;
  }
  if (task->owns_icvs) free(const_cast<DataIcvs*>(task->icvs));
  task->owns_icvs = false;
}

ExplicitTask* run_one_task(sched::Thread* me, MemberQueue* queue, ExplicitTask* task,
                           Task* waits_in, bool keep) {
  Task* outer = me->task;
  if (BOSK_LIKELY(!tasks_cancelled(task) || (task->flags & ExplicitTask::kCopiedByProgram) != 0)) {
    const ExceptionState exceptions = exceptions_enter();
    me->task = task;
    task->function(task->data);
    me->task = outer;
    exceptions_leave(exceptions);
    if (BOSK_UNLIKELY(task->dependences != nullptr || task->owns_icvs))
      free_private_parts(queue, task);
    if (BOSK_UNLIKELY((task->flags & ExplicitTask::kDetached) != 0)) {
      if ((task->flags & ExplicitTask::kUndeferred) != 0) {
        wait_for_event(me, task);
      } else if ((task->extras()->event.fetch_or(kBodyHasRun, std::memory_order_acq_rel) &
                  kEventFulfilled) == 0) {
        return nullptr;
      }
    }
  } else if ((task->flags & ExplicitTask::kDetached) != 0 &&
             (task->extras()->event.fetch_or(kBodyHasRun, std::memory_order_acq_rel) &
              kEventFulfilled) == 0) {
    // Its event may still be fulfilled, so the task must stay until then.
    return nullptr;
  }
  return complete_task(queue, task, waits_in, keep);
}

}  // namespace

void run_task(sched::Thread* me, MemberQueue* queue, ExplicitTask* task, Task* waits_in,
              bool keep) {
  do {
    task = run_one_task(me, queue, task, waits_in, keep);
  } while (BOSK_UNLIKELY(task != nullptr));
}

ExplicitTask* make_serial_task(MemberQueue* queue, Task* parent, size_t bytes, size_t alignment) {
  ExplicitTask* task = make_task(queue, parent, {false, false, bytes, alignment});
  task->flags |= ExplicitTask::kUncounted | ExplicitTask::kUndeferred;
  own_add(parent->children, kWholeChild);
  return task;
}

bool run_serial_task(sched::Thread* me, MemberQueue* queue, ExplicitTask* task) {
  Task* parent = task->parent;
  me->task = task;
  task->function(task->data);
  me->task = parent;
  if (BOSK_UNLIKELY(task->dependences != nullptr || task->owns_icvs)) {
    free_private_parts(queue, task);
    task->icvs = parent->icvs;
  }
  // Zero is exact: nobody else has to do with the record.
  if (BOSK_LIKELY(own_count(task->children) == 0)) return true;
  complete_task(queue, task, parent, false);
  return false;
}

void end_serial_tasks(MemberQueue* queue, ExplicitTask* task) {
  complete_task(queue, task, task->parent, false);
}

bool run_own_children(sched::Thread* me, MemberQueue* queue) {
  Task* task = me->task;
  const uintptr_t origin = reinterpret_cast<uintptr_t>(task) | (task->is_implicit ? 1 : 0);
  const auto is_child = [origin](const ExplicitTask* candidate) {
    return candidate->origin.load(std::memory_order_relaxed) == origin;
  };
  while (finished_half(own_count(task->children)) != 0) {
    ExplicitTask* child = queue->deque.pop_if(is_child);
    if (child == nullptr) return false;
    run_task(me, queue, child, task, false);
  }
  return true;
}

void queue_released_task(MemberQueue* queue, ExplicitTask* task, bool local) {
  Team* team = task->team;
  Task* parent = task->parent;
  TaskGroup* group = task->group;
  // In the parent's own queue it is where the parent looks first. Elsewhere it could be buried
  // where the parent cannot reach it, so then it goes where everybody looks.
  if (!local || queue == nullptr || task->priority != 0 || !queue->deque.push(task)) {
    push_shared(team, task);
    // light: a parent or group owner that goes to sleep pays for the heavy half, then looks again.
    after_queueing<base::StdAtomics>();
    if (!local && owner_waits(parent->completed.load(std::memory_order_acquire)))
      poke_number(parent->waiter.load(std::memory_order_relaxed));
    if (group != nullptr) group_queued(group, local ? parent : nullptr);
  }
  tell_team(team);
}

bool create_plain_task(TaskFunction function, void* data, size_t bytes, size_t alignment,
                       bool deferrable) {
  sched::Thread* me = context::self();
  if (BOSK_UNLIKELY(me == nullptr)) return false;
  Task* parent = me->task;
  Team* team = parent->team;
  MemberQueue* queue = me->member->queue;
  constexpr size_t kRoom = TaskMemory::kBytes[0] - sizeof(ExplicitTask);
  if (BOSK_UNLIKELY(queue == nullptr || parent->owns_icvs || parent->group != nullptr ||
                    team->cancelled.load(std::memory_order_relaxed) != 0))
    return false;
  const uint64_t children = own_count(parent->children) + kWholeChild;
  if (BOSK_UNLIKELY(finished_half(children) >= kManyChildren)) return false;
  bool in_place = !deferrable || parent->final_task || team->level == 0;
  if (BOSK_UNLIKELY(queue->deque.size_bound() >= queue->limit))
    in_place = in_place || queue->deque.refresh_size() >= queue->limit;
  if (BOSK_UNLIKELY(!in_place && (bytes > kRoom || alignment > 32))) return false;
  bool fresh;
  void* memory = queue->memory.take(0, &fresh);
  auto* task =
      BOSK_UNLIKELY(fresh) ? new (memory) ExplicitTask : static_cast<ExplicitTask*>(memory);
  inherit(task, parent);
  task->function = function;
  parent->children.store(children, std::memory_order_relaxed);
  if (BOSK_UNLIKELY(in_place)) {
    task->data = data;
    run_task(me, queue, task, parent, false);
    return true;
  }
  task->data = task + 1;
  if (BOSK_LIKELY(bytes == 16))
    memcpy(task->data, data, 16);
  else if (bytes != 0)
    memcpy(task->data, data, bytes);
  if (BOSK_UNLIKELY(!queue->deque.push(task))) push_shared(team, task);
  tell_team(team);
  return true;
}

void create_task(const TaskRequest& request) {
  sched::Thread* me = current_thread();
  Task* parent = me->task;
  if (BOSK_UNLIKELY(tasks_cancelled(parent))) return;
  Team* team = parent->team;
  MemberQueue* queue = queue_of(me->member);
  const uint32_t flags = request.flags;
  const bool undeferred = !request.deferrable || parent->final_task;
  if (BOSK_UNLIKELY((flags & kTaskDepend) != 0 && undeferred)) {
    if (parent->dependences != nullptr)
      if (DependenceNode* node = parent->dependences->probe(queue, request.depend))
        wait_for_node(me, node);
  }
  const bool dependent = (flags & kTaskDepend) != 0 && !undeferred;
  bool run_now = undeferred || team->level == 0;
  if (BOSK_UNLIKELY(!run_now && queue->deque.size_bound() >= queue->limit))
    run_now = queue->deque.refresh_size() >= queue->limit;

  Shape shape;
  shape.extras = dependent || (flags & kTaskDetach) != 0;
  shape.icvs = parent->owns_icvs;
  // Undeferred tasks may use the creator's data in place, unless the program wants a copy.
  const bool in_place = undeferred && request.copy == nullptr && request.bounds == nullptr;
  shape.bytes = in_place ? 0 : request.bytes;
  shape.alignment = request.alignment;
  ExplicitTask* task = make_task(queue, parent, shape);
  task->function = request.function;
  if (BOSK_UNLIKELY((flags & (kTaskFinal | kTaskPriority | kTaskDetach)) != 0)) {
    if ((flags & kTaskFinal) != 0) task->final_task = true;
    if ((flags & kTaskPriority) != 0 && request.priority > 0) {
      const int most = process_icvs().max_task_priority;
      const int priority = request.priority < most ? request.priority : most;
      task->priority = static_cast<uint16_t>(priority < UINT16_MAX ? priority : UINT16_MAX);
    }
    if ((flags & kTaskDetach) != 0) {
      task->flags |= ExplicitTask::kDetached;
      // The compiler has the handle copied into the task with its other data.
      const auto handle = reinterpret_cast<uintptr_t>(task);
      memcpy(request.event, &handle, sizeof(handle));
      if (request.data != nullptr) memcpy(request.data, &handle, sizeof(handle));
    }
  }
  if (undeferred) task->flags |= ExplicitTask::kUndeferred;
  if (in_place)
    task->data = request.data;
  else if (request.bytes != 0)
    copy_data(me, task, request);

  // Counted before anybody can see it, so that its end cannot come first.
  uint64_t children = own_count(parent->children) + kWholeChild;
  parent->children.store(children, std::memory_order_relaxed);
  // A creator that never waits must take over what others ended before that word runs over.
  if (BOSK_UNLIKELY(finished_half(children) >= kManyChildren))
    collect(parent->children, parent->completed);
  if (BOSK_UNLIKELY(parent->group != nullptr)) group_add(parent->group, parent);

  if (BOSK_UNLIKELY(dependent)) {
    if (parent->dependences == nullptr) parent->dependences = make_table(queue);
    DependenceNode* node = parent->dependences->enter(queue, task, request.depend);
    if (!node_is_ready(node)) {
      // Only the owner has brothers from outside of the group.
      if (parent->group != nullptr && parent->group->owner == parent)
        parent->group->waits_for_earlier = true;
      // Bounded memory: a creator far ahead of its tasks runs some of them.
      if (finished_half(own_count(parent->children)) >= 4 * queue->limit &&
          finished_half(collect(parent->children, parent->completed)) >= 4 * queue->limit)
        run_one_descendant(me);
      return;
    }
  }
  if (BOSK_UNLIKELY(run_now)) {
    run_task(me, queue, task, parent, false);
    return;
  }
  if (BOSK_UNLIKELY(task->priority != 0 || !queue->deque.push(task))) push_shared(team, task);
  if (BOSK_UNLIKELY(parent->group != nullptr)) group_queued(parent->group, parent);
  tell_team(team);
}

void fulfill_event(uintptr_t handle) {
  auto* task = reinterpret_cast<ExplicitTask*>(handle);
  TaskExtras* extras = task->extras();
  // acquire: with kCreatorWaits comes the creator's queue. It is read while the event still keeps
  // the task alive.
  uint32_t seen = extras->event.load(std::memory_order_acquire);
  uint32_t waiter;
  do {
    waiter = (seen & kCreatorWaits) != 0 ? extras->waiter.load(std::memory_order_relaxed) : 0;
    // acq_rel: what the caller did comes before what waits for the task, and if the body has run,
    // what it did too.
  } while (!extras->event.compare_exchange_weak(
      seen, seen | kEventFulfilled, std::memory_order_acq_rel, std::memory_order_acquire));
  if ((seen & kBodyHasRun) == 0) {
    poke_number(waiter);
    return;
  }
  // Any thread, one of another team or of no team at all too: it owns none of the counts.
  sched::Thread* me = context::self();
  MemberQueue* queue = me != nullptr && me->member != nullptr ? me->member->queue : nullptr;
  complete_task(queue, task, nullptr, false);
}

}  // namespace bosk::omp
