// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMP_DISPLAY_ENV and omp_display_env: the ICVs as libgomp 12 lays them out (scripts parse it).
#pragma once

#include "base/mapped_array.h"
#include "omp/icv.h"

namespace bosk::omp {

/// What may have changed since the environment was read.
struct CurrentIcvs {
  uint32_t num_teams;
  uint32_t teams_thread_limit;
  const char* affinity_format;
};

/// Appends the whole text. False: out of memory.
bool format_env(const ProcessIcvs& process, const CurrentIcvs& current, bool verbose,
                base::MappedArray<char>* text);

/// Writes it to standard error. Shows what initial threads start with, as libgomp does, not what
/// the calling task has set since.
void display_env(bool verbose);

}  // namespace bosk::omp
