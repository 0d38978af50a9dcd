// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What places teams on topology::process_machine(), found out once in a process (docs/policies.md).
#pragma once

#include "policies/engine.h"

namespace bosk::omp {

/// What places teams. The engine's queues are there because it wants them; OpenMP's threads are on
/// their workers' own.
struct Placing {
  const topology::Machine* machine = nullptr;  ///< null: teams are not placed
  sched::DomainQueues queues;
  policies::PolicyEngine engine;
  bool keep_reach = false;    ///< together means: nobody else takes them
  bool nearest_first = true;  ///< idle workers look through the others by distance
  const topology::Level* level = nullptr;
  char policy[policies::PolicyPlan::kMost * sizeof(base::PolicyClause)] = "";
};

/// Null: nobody knows yet.
const Placing* known_placing();
/// Finds out, if nobody has. Preemption must be on.
const Placing& find_placing();
/// A team that was no hot one has been placed. Returns its number, from 1 on.
uint64_t count_placed();

/// Finds out now whether teams are placed, if BOSK_POLICY is given, so that what is wrong with it is
/// said at once. Otherwise the first nested team finds out. Preemption must be on.
void prepare_placing();

/// In the child of a fork: policies that are plug-ins may have threads and locks.
void placing_forget_after_fork();

struct PlacedBy {
  const char* policy = nullptr;  ///< as BOSK_POLICY has it; null: nothing, or nobody knows yet
  const topology::Level* level = nullptr;  ///< the innermost one that is named; null: none is
  uint64_t asked = 0;  ///< how many teams were no hot ones, so that a policy was asked
};
PlacedBy placed_by();
/// Some policy that places teams goes by their memory. False also while nobody knows yet.
bool placed_by_memory();

/// For those who look at what is near first: the machine, null if all is equally near, or if nobody knows yet. The second one finds
/// out, which may take milliseconds; preemption must be on.
struct ByDistance {
  bool known = false;
  const topology::Machine* machine = nullptr;
};
ByDistance known_distances();
const topology::Machine* find_distances();

}  // namespace bosk::omp
