// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What was decided about memory, and by which numbers: for the report, and for tests.
#pragma once

#include <stdint.h>

#include "memory/migration.h"
#include "policies/memory/decision.h"

namespace bosk::policies {

/// One decision. The one kind of event that memory has.
struct MemoryEvent {
  MemoryAction action = MemoryAction::kNothing;
  bool forced = false;   ///< BOSK_MEMORY_MOVES said so
  bool unknown = false;  ///< costs that would be needed
  double rounds = 0;     ///< the expected re-use
  PlanCost costs[kMemoryActions];
  memory::Moved pages;
  uint32_t areas = 0;
  uint32_t marked = 0;
  uint32_t stayed = 0;
};

/// Since the start of the process.
struct MemoryDecisions {
  uint64_t taken = 0;
  uint64_t by_action[kMemoryActions] = {};
  uint64_t unknown = 0;
  uint64_t areas = 0;
  uint64_t marked = 0;
  uint64_t stayed = 0;  ///< areas that were to move, and could not
  memory::Moved pages;
  /// The last one that did something; of none: taken is 0, or all did nothing.
  MemoryEvent last;
};

/// Any thread, with preemption on or off.
void note_memory_event(const MemoryEvent& event);
MemoryDecisions memory_decisions();

}  // namespace bosk::policies
