// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report's statistics of entities (2007 §3.1): each thread of a level-1 team with all that it opens,
// summed up the tree.
//
// A member's processor time is that of the kernel thread that ran it, from its beginning to its end,
// without that of members that ran on the same stack meanwhile: they are measured themselves. Of one that
// was switched out nobody knows how much of that time was its own: it counts as not measured.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"

namespace bosk::sched {
struct Thread;
}

namespace bosk::omp {

struct ImplicitTask;

/// Threads of level-1 teams that are told apart; the last one stands for all above.
constexpr uint32_t kReportedEntities = 1024;
constexpr uint32_t kUntoldLoad = UINT32_MAX;

/// What is known of one.
struct EntityLine {
  uint32_t thread = 0;    ///< its number in level-1 teams
  uint64_t members = 0;   ///< that were run: it, and members of the teams below it
  uint64_t ghosts = 0;    ///< of these: run as ghosts
  uint64_t measured = 0;  ///< of these: whose processor time is known
  uint64_t cpu_ns = 0;    ///< of the measured ones
  uint64_t counted = 0;   ///< of the measured ones: whose cache accesses are known
  uint64_t accesses = 0;
  uint64_t misses = 0;
  uint32_t load = kUntoldLoad;        ///< told last
  uint32_t last_worker = UINT32_MAX;  ///< where a member of it began last
};

// While the report is on. None allocates or locks inside libc.

/// The calling thread begins its member.
void note_entity_begin(sched::Thread* me);
/// It has ended it, for good; later calls for the same member do nothing. Any member, also such that
/// has not begun by note_entity_begin().
void note_entity_end(sched::Thread* me, const ImplicitTask* member);
/// Its member was a ghost.
void note_entity_ghost(const sched::Thread* me);
/// A load was told for thread `index` of level-1 teams.
void note_entity_load(uint32_t index, uint32_t load);

/// All that have run, by number. False: out of memory.
bool collect_entities(base::MappedArray<EntityLine>* lines);

}  // namespace bosk::omp
