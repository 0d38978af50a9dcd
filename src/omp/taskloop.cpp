// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// taskloop.
#include "omp/taskloop.h"

#include "omp/reduction.h"
#include "omp/taskgroup.h"
#include "omp/taskloop_range.h"

namespace bosk::omp {
namespace {

uintptr_t* reduction_array(const TaskRequest& request) {
  return reinterpret_cast<uintptr_t*>(static_cast<uintptr_t*>(request.data)[2]);
}

}  // namespace

uint64_t taskloop_iterations(const TaskLoopSpace& space, bool is_signed) {
  const uint64_t from = space.up ? space.start : space.end;
  const uint64_t to = space.up ? space.end : space.start;
  const bool none = is_signed ? static_cast<int64_t>(from) >= static_cast<int64_t>(to) : from >= to;
  if (none) return 0;
  const uint64_t step = space.up ? space.step : -space.step;
  return (to - from - 1) / step + 1;
}

TaskLoopSplit split_taskloop(uint64_t iterations, uint32_t flags, uint64_t clause,
                             uint32_t threads) {
  if ((flags & kTaskGrainsize) != 0) {
    const uint64_t grain = clause == 0 ? 1 : clause;
    if ((flags & kTaskStrict) != 0) return {(iterations - 1) / grain + 1, grain, 0};
    // At least a grain each, less than two.
    const uint64_t tasks = iterations < grain ? 1 : iterations / grain;
    return {tasks, iterations / tasks, iterations % tasks};
  }
  uint64_t tasks = clause == 0 ? threads : clause;
  if (tasks > iterations) tasks = iterations;
  return {tasks, iterations / tasks, iterations % tasks};
}

void taskloop(TaskRequest request, const TaskLoopSpace& space, bool is_signed, uint64_t clause) {
  const uint32_t flags = request.flags;
  const bool grouped = (flags & kTaskNogroup) == 0;
  const bool reduces = (flags & kTaskReduction) != 0;
  Task* parent = current_task();
  const uint64_t iterations = taskloop_iterations(space, is_signed);
  if (iterations == 0 || tasks_cancelled(parent)) {
    // Tells the caller that its array was not registered.
    if (grouped && reduces) reduction_array(request)[kReductionMemory] = 0;
    return;
  }
  const TaskLoopSplit split = split_taskloop(iterations, flags, clause, parent->team->size);
  if (grouped) {
    taskgroup_push(parent);
    if (reduces) reduction_register(parent, reduction_array(request));
  }
  request.flags = flags & (kTaskUntied | kTaskFinal | kTaskMergeable | kTaskPriority);
  request.deferrable = (flags & kTaskIf) != 0;
  if (grouped && suits_ranges(request, split.tasks, parent->team->size)) {
    run_taskloop_as_ranges(request, space, split);
    return;
  }
  uint64_t bounds[2] = {space.start, 0};
  request.bounds = bounds;
  for (uint64_t i = 0; i < split.tasks; ++i) {
    const uint64_t size = split.size + (i < split.larger ? 1 : 0);
    // The last one ends where the loop ends, to the very value: lastprivate is told by it.
    bounds[1] = i + 1 == split.tasks ? space.end : bounds[0] + size * space.step;
    create_task(request);
    bounds[0] = bounds[1];
  }
  if (grouped) taskgroup_end();
}

}  // namespace bosk::omp
