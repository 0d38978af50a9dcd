// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// taskloop: a loop whose iterations are given to tasks.
#pragma once

#include <stdint.h>

#include "omp/explicit_task.h"

namespace bosk::omp {

/// The iteration space of a taskloop, for signed and unsigned loop variables alike: all arithmetic
/// is modulo 2^64, and `up` says which way it goes.
struct TaskLoopSpace {
  uint64_t start;
  uint64_t end;   ///< exclusive
  uint64_t step;  ///< two's complement where it goes down
  bool up;
};

/// Iterations of the space; `is_signed` says how start and end compare.
uint64_t taskloop_iterations(const TaskLoopSpace& space, bool is_signed);

/// How iterations are spread: `larger` tasks of `size` + 1 iterations, then tasks of `size`, the
/// last one perhaps shorter (strict grain size).
struct TaskLoopSplit {
  uint64_t tasks;
  uint64_t size;
  uint64_t larger;
};
TaskLoopSplit split_taskloop(uint64_t iterations, uint32_t flags, uint64_t clause,
                             uint32_t threads);

/// `request` describes one of the tasks; its data begins with room for two bounds, and, with
/// kTaskReduction, the address of the reduction array.
void taskloop(TaskRequest request, const TaskLoopSpace& space, bool is_signed, uint64_t clause);

}  // namespace bosk::omp
