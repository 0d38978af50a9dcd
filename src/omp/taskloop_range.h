// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Taskloops of many small tasks: ranges of them that are split while somebody takes parts away.
#pragma once

#include "omp/taskloop.h"

namespace bosk::omp {

/// Are `tasks` so many that not each of them needs to be queued? Where every thread of the team can be
/// given 64, tasks of one thread run one after the other; as with libgomp, one of them must not wait
/// for another by spinning.
bool suits_ranges(const TaskRequest& request, uint64_t tasks, uint32_t threads);

/// Runs the loop's tasks, with whoever takes ranges of them, and ends the innermost taskgroup, which is
/// the loop's.
void run_taskloop_as_ranges(const TaskRequest& request, const TaskLoopSpace& space,
                            const TaskLoopSplit& split);

}  // namespace bosk::omp
