// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Taskgroups.
#include "omp/taskgroup.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/explicit_task.h"

namespace bosk::omp {
namespace {

/// Thieves look at it as a hint (group_hint()).
void set_group(Task* task, TaskGroup* group) {
  std::atomic_ref<TaskGroup*>(task->group).store(group, std::memory_order_relaxed);
}

}  // namespace

TaskGroup* taskgroup_push(Task* task) {
  MemberQueue* queue = queue_of(current_member());
  TaskGroup* group = queue->free_groups;
  if (BOSK_LIKELY(group != nullptr)) {
    queue->free_groups = group->outer;
  } else {
    void* memory = malloc(sizeof(TaskGroup));
    if (memory == nullptr)
      base::gomp_fatal("Out of memory allocating %zu bytes", sizeof(TaskGroup));
    group = static_cast<TaskGroup*>(memory);
  }
  new (group) TaskGroup;
  group->outer = task->group;
  group->owner = task;
  set_group(task, group);
  return group;
}

void taskgroup_end() {
  sched::Thread* me = current_thread();
  Task* task = me->task;
  TaskGroup* group = task->group;
  if (BOSK_UNLIKELY(group == nullptr)) return;
  wait_for_group(me, group);
  set_group(task, group->outer);
  MemberQueue* queue = queue_of(me->member);
  group->outer = queue->free_groups;
  queue->free_groups = group;
}

void cancel_taskgroup(Task* task) {
  TaskGroup* group = task->group;
  if (group != nullptr && group->is_workshare) group = group->outer;
  // relaxed: a request; tasks that are found before it is seen run.
  if (group != nullptr) group->cancelled.store(true, std::memory_order_relaxed);
}

void group_add(TaskGroup* group, const Task* creator) {
  if (creator == group->owner)
    own_add(group->mine, 1);
  else
    add_for_owner(group->others, group->waiter, uint64_t(-1));
}

void group_done(TaskGroup* group, const Task* on) {
  if (on != nullptr && on == group->owner) {
    own_add(group->mine, uint64_t(-1));
    return;
  }
  const auto added = add_for_owner(group->others, group->waiter, 1);
  if (BOSK_UNLIKELY(added.to_wake != nullptr)) poke(added.to_wake);
}

void group_queued(TaskGroup* group, const Task* creator) {
  // The group outlives the call: the creator is in it, and running.
  if (creator == group->owner) return;
  after_queueing<base::StdAtomics>();
  if (BOSK_UNLIKELY(owner_waits(group->others.load(std::memory_order_acquire))))
    poke(group->waiter.load(std::memory_order_relaxed));
}

}  // namespace bosk::omp
