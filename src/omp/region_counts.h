// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parallel regions of the program, told apart by the function that the compiler has made of each: how often they were opened, with
// how many threads, and how long they took. Where their time went is sampled (sched/time_samples.h).
//
// A region's number is its slot in a table that only grows; it is found by the function's address, without a lock, and kept in the team,
// which its worker uses again. Counts are kept by worker, so that nothing is shared (region_watch.h). The clock is read for all calls of
// a region at first, then for about one in a hundred.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"
#include "sched/team_events.h"
#include "sched/time_samples.h"

namespace bosk::sched {
struct Worker;
}  // namespace bosk::sched

namespace bosk::omp {

/// How the members of teams of more than one were run: bits, for a region's teams may differ.
enum class RegionMode : uint8_t {
  kCpus = 1,           ///< at most as many as workers: each had one to itself
  kUserLevel = 2,      ///< user-level threads
  kKernelThreads = 4,  ///< a kernel thread each, of more than there are workers
};

/// What is known of one.
struct RegionLine {
  const void* function =
      nullptr;            ///< null: all that were beyond the table, and what belongs to no region
  uint32_t level = 0;     ///< where it was opened last
  uint32_t smallest = 0;  ///< team
  uint32_t largest = 0;
  uint8_t modes = 0;  ///< RegionMode
  uint64_t calls = 0;
  uint64_t members = 0;
  uint64_t open_ns = 0;  ///< from being opened to being closed, in sum
  uint64_t longest_ns = 0;
  uint64_t shares_ns[sched::kTimeShares] = {};
  uint64_t events[sched::kTeamEvents] = {};  ///< what was done with its teams: by TeamEvent
};

/// The worker's record is about to be freed: what it has counted stays. Called always.
void keep_region_counts(sched::Worker* w);

/// In a forked child, which has opened none.
void forget_region_counts_after_fork();
/// Those that were opened, or sampled. False: out of memory.
bool collect_regions(base::MappedArray<RegionLine>* lines);

}  // namespace bosk::omp
