// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parallel regions of the program, told apart by the function that the compiler has made of each: how often they were opened, with
// how many threads, and how long they took. Where their time went is sampled (sched/time_samples.h).
//
// A region's number is its slot in a table that only grows; it is found by the function's address, without a lock. Counts are kept by
// worker, and written by whoever plays it, so that nothing is shared. The clock is read for all calls of a region at first, then for
// one in sixteen: in sum some 6 ns a region.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"
#include "sched/time_samples.h"

namespace bosk::sched {
struct Thread;
struct Worker;
}  // namespace bosk::sched

namespace bosk::omp {

struct Team;
struct RegionBook;  ///< a worker's counts

/// What is known of one.
struct RegionLine {
  const void* function =
      nullptr;            ///< null: all that were beyond the table, and what belongs to no region
  uint32_t level = 0;     ///< where it was opened last
  uint32_t smallest = 0;  ///< team
  uint32_t largest = 0;
  uint64_t calls = 0;
  uint64_t members = 0;
  uint64_t open_ns = 0;  ///< from being opened to being closed, in sum
  uint64_t longest_ns = 0;
  uint64_t shares_ns[sched::kTimeShares] = {};
};

// While regions are sampled.

/// The calling thread has opened it: numbers it, and counts it. Preemption is off.
void note_region_opened(sched::Thread* me, Team* team, uint32_t size);
/// The others are on their way, and its own part begins.
[[gnu::cold]] void note_region_begun(sched::Thread* me, const Team* team);
/// Its part, or another member's, has ended.
[[gnu::cold]] void note_part_ended(sched::Thread* me, const Team* team);
/// It closes it, and is in the team above again. Preemption is off.
[[gnu::cold]] void note_region_closed(sched::Thread* me, const Team* team);
/// The worker's record is about to be freed: what it has counted stays. Called always.
void keep_region_counts(sched::Worker* w);

/// In a forked child, which has opened none.
void forget_region_counts_after_fork();
/// Those that were opened, or sampled. False: out of memory.
bool collect_regions(base::MappedArray<RegionLine>* lines);

}  // namespace bosk::omp
