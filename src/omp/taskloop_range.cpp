// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of a taskloop's tasks.
//
// A range is a task that runs the loop's tasks from `first` on, one after the other, in one record. Before
// each it looks whether its queue is empty, that is, whether somebody has taken what it queued last; then
// it queues the upper half of what it has left. So there are about log2(tasks) ranges per steal, whatever
// the number of tasks, and idle threads find work as long as any thread has two tasks left.
#include "omp/taskloop_range.h"

#include <string.h>

#include "omp/environment.h"
#include "omp/task_queue_member.h"
#include "omp/taskgroup.h"

namespace bosk::omp {
namespace {

/// Constant while the loop runs.
struct Loop {
  const TaskRequest& request;
  const TaskLoopSpace& space;
  const TaskLoopSplit& split;
  bool shared;      ///< others may run parts of it
  bool final_task;  ///< of its tasks
};

struct Range {
  const Loop* loop;
  uint64_t first;
  uint64_t end;
};

void run_range(void* data);

/// Queues the upper half of the range.
void split_range(Range* range) {
  Range upper = *range;
  upper.first = range->end = range->first + (range->end - range->first) / 2;
  create_task({run_range, &upper, nullptr, sizeof(Range), alignof(Range), true, 0, nullptr, 0,
               nullptr, nullptr});
}

/// The record for the range's tasks, with the data that does not change.
ExplicitTask* make_record(MemberQueue* queue, Task* range_task, const Loop& loop) {
  const TaskRequest& request = loop.request;
  ExplicitTask* task = make_serial_task(queue, range_task, request.bytes, request.alignment);
  task->function = request.function;
  task->final_task = task->final_task || loop.final_task;
  return task;
}

/// Every task has copies of its own, which it may change (or destroy, if the program made them).
void fill(sched::Thread* me, const Loop& loop, ExplicitTask* task, const uint64_t bounds[2]) {
  const TaskRequest& request = loop.request;
  if (BOSK_UNLIKELY(request.copy != nullptr)) {
    Task* range_task = me->task;
    me->task = task;
    request.copy(task->data, request.data);
    me->task = range_task;
  } else {
    // Mostly a few words: a call would cost more than the copy.
    char* to = static_cast<char*>(task->data);
    const char* from = static_cast<const char*>(request.data);
    constexpr size_t kBounds = 2 * sizeof(uint64_t);
    size_t at = kBounds;
    for (; at + 8 <= request.bytes && at < 128; at += 8) memcpy(to + at, from + at, 8);
    if (at < request.bytes) memcpy(to + at, from + at, request.bytes - at);
  }
  memcpy(task->data, bounds, 2 * sizeof(uint64_t));
}

void run_range(void* data) {
  Range range = *static_cast<const Range*>(data);
  const Loop& loop = *range.loop;
  const TaskLoopSplit& split = loop.split;
  sched::Thread* me = context::self();
  Task* range_task = me->task;
  MemberQueue* queue = queue_of(me->member);
  ExplicitTask* task = nullptr;
  const uint64_t longer = range.first < split.larger ? range.first : split.larger;
  uint64_t bounds[2] = {0,
                        loop.space.start + (range.first * split.size + longer) * loop.space.step};
  for (; range.first < range.end && !tasks_cancelled(range_task); ++range.first) {
    if (loop.shared && range.end - range.first > 1 && queue->deque.size_hint() == 0)
      split_range(&range);
    if (task == nullptr) task = make_record(queue, range_task, loop);
    bounds[0] = bounds[1];
    bounds[1] += (split.size + (range.first < split.larger ? 1 : 0)) * loop.space.step;
    // The last one ends where the loop ends, to the very value: lastprivate is told by it.
    if (range.first + 1 == split.tasks) bounds[1] = loop.space.end;
    fill(me, loop, task, bounds);
    if (!run_serial_task(me, queue, task)) task = nullptr;
  }
  if (task != nullptr) end_serial_tasks(queue, task);
}

}  // namespace

bool suits_ranges(const TaskRequest& request, uint64_t tasks, uint32_t threads) {
  constexpr uint64_t kQueuedPerThread = 64;
  const bool fits = sizeof(ExplicitTask) + request.bytes <= TaskMemory::kLargestTask &&
                    request.alignment <= base::kCacheLine;
  const bool prior = (request.flags & kTaskPriority) != 0 && request.priority > 0 &&
                     process_icvs().max_task_priority > 0;
  return fits && !prior && tasks > kQueuedPerThread * threads;
}

void run_taskloop_as_ranges(const TaskRequest& request, const TaskLoopSpace& space,
                            const TaskLoopSplit& split) {
  const Task* parent = current_task();
  const bool final_task = parent->final_task || (request.flags & kTaskFinal) != 0;
  const Loop loop{request, space, split,
                  request.deferrable && !final_task && parent->team->size > 1, final_task};
  Range all{&loop, 0, split.tasks};
  create_task({run_range, &all, nullptr, sizeof(Range), alignof(Range), false, 0, nullptr, 0,
               nullptr, nullptr});
  // Queued ranges refer to `loop`.
  taskgroup_end();
}

}  // namespace bosk::omp
