// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target constructs on the host: what a region is called with, and the thread that runs it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "omp/team.h"

namespace bosk::omp {

/// A target region as compiled code describes it. The addresses are the host's, so mapping is the
/// identity; only what is firstprivate has to be copied.
struct TargetRegion {
  RegionFunction function;
  size_t count;           ///< of what is mapped
  void** addresses;       ///< for the function, one per item
  const size_t* sizes;    ///< in bytes
  const uint16_t* kinds;  ///< bits 0..7: how it is mapped, 8..15: log2 of its alignment
  uint32_t thread_limit;  ///< 0: no clause
};

/// Runs fn(data) as a device would: by an initial thread, thread 0 of a team of one at level 0, with the
/// ICVs of the environment and a contention group of its own. thread_limit 0: the ICV decides.
void run_as_initial_thread(RegionFunction fn, void* data, uint32_t thread_limit);

/// The target construct. `depend` may be null.
void run_target(const TargetRegion& region, void** depend);
/// The target construct with `nowait`: a task.
void defer_target(const TargetRegion& region, void** depend);

/// Target constructs that only move data: there is nothing to move, but there are dependences to keep.
void keep_dependences(void** depend, bool nowait);

/// Runs fn(data) as a task with these dependences (omp_depend_t), on a copy of the data that
/// copy(to, from) makes.
void defer_with_dependences(void (*fn)(void*), void* data, void (*copy)(void*, void*), size_t bytes,
                            int count, void* dependences);

}  // namespace bosk::omp
