// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A team's shared tasks: in order of priority, under a lock.
#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/environment.h"
#include "omp/explicit_task.h"
#include "omp/task_queue_guard.h"

namespace bosk::omp {

/// First come first served within each of 64 priorities.
struct SharedTasks {
  static constexpr uint32_t kPriorities = 64;
  uint64_t used = 0;  ///< bit p: there are tasks of priority p
  struct List {
    ExplicitTask* first = nullptr;
    ExplicitTask* last = nullptr;
  } of[kPriorities];
};

namespace {

uint32_t shared_list_of(uint32_t priority) {
  if (priority == 0) return 0;
  const auto most = static_cast<uint32_t>(process_icvs().max_task_priority);
  if (most < SharedTasks::kPriorities) return priority;
  const uint64_t scaled = uint64_t{priority} * (SharedTasks::kPriorities - 1) / most;
  return scaled == 0 ? 1 : static_cast<uint32_t>(scaled);
}

SharedTasks* shared_tasks(TaskQueueState& state) {
  SharedTasks* shared = state.shared.load(std::memory_order_acquire);
  if (BOSK_LIKELY(shared != nullptr)) return shared;
  void* memory = malloc(sizeof(SharedTasks));
  if (memory == nullptr)
    base::die(1, "out of memory: cannot allocate %zu bytes for a queue of tasks",
              sizeof(SharedTasks));
  auto* fresh = new (memory) SharedTasks;
  // acq_rel: whoever uses the other's lists sees them empty.
  if (state.shared.compare_exchange_strong(shared, fresh, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
    return fresh;
  free(fresh);
  return shared;
}

}  // namespace

ExplicitTask* take_shared(Team* team, const Eligible& eligible) {
  TaskQueueState& state = team->tasks;
  QuietGuard guard(state.lock);
  SharedTasks* shared = state.shared.load(std::memory_order_relaxed);
  if (shared == nullptr) return nullptr;
  for (uint64_t left = shared->used; left != 0;) {
    const int priority = 63 - __builtin_clzll(left);
    left &= ~(uint64_t{1} << priority);
    SharedTasks::List& list = shared->of[priority];
    ExplicitTask* before = nullptr;
    for (ExplicitTask* task = list.first; task != nullptr; before = task, task = task->link()) {
      if (!eligible(task)) continue;
      ExplicitTask* after = task->link();
      if (before == nullptr)
        list.first = after;
      else
        before->set_link(after);
      if (list.last == task) list.last = before;
      if (list.first == nullptr) shared->used &= ~(uint64_t{1} << priority);
      state.shared_count.fetch_sub(1, std::memory_order_relaxed);
      task->set_link(nullptr);
      return task;
    }
  }
  return nullptr;
}

void push_shared(Team* team, ExplicitTask* task) {
  TaskQueueState& state = team->tasks;
  SharedTasks* shared = shared_tasks(state);
  const uint32_t priority = shared_list_of(task->priority);
  task->set_link(nullptr);
  QuietGuard guard(state.lock);
  SharedTasks::List& list = shared->of[priority];
  if (list.first == nullptr)
    list.first = task;
  else
    list.last->set_link(task);
  list.last = task;
  shared->used |= uint64_t{1} << priority;
  state.shared_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace bosk::omp
