// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plan for entities and areas, and its time. Private to this folder.
#pragma once

#include "policies/memory/decision.h"

namespace bosk::policies {

struct MemoryPlan {
  base::MappedArray<memory::NodeIndex> entity_node;
  base::MappedArray<AreaPlan> area;
  base::MappedArray<double> entity_ns;  ///< filled in by cost_of_plan(): once and rounds
  PlanCost cost;

  bool resize(const MemorySituation& situation) {
    return entity_node.resize(situation.n_entities) && area.resize(situation.n_areas) &&
           entity_ns.resize(situation.n_entities);
  }
  void release() {
    entity_node.release();
    area.release();
    entity_ns.release();
  }
};

/// What cost_of_plan() works with, per node; kept from plan to plan.
struct PlanScratch {
  base::MappedArray<uint32_t> threads_on;
  base::MappedArray<double> memory_ns;  ///< a round of all who use it
  base::MappedArray<uint32_t> users;
  base::MappedArray<double> own;  ///< a round of the entity that is looked at

  /// All zero.
  bool reset(uint32_t nodes) {
    threads_on.clear();
    memory_ns.clear();
    users.clear();
    own.clear();
    return threads_on.resize(nodes) && memory_ns.resize(nodes) && users.resize(nodes) &&
           own.resize(nodes);
  }
  void release() {
    threads_on.release();
    memory_ns.release();
    users.release();
    own.release();
  }
};

/// What the pages of an area take to get from where they are to `to` (kSpreadOut: round all nodes), by that
/// means, for the entity whose use it is; `sharers`: so many pay together.
double cost_of_move(const MemorySituation& situation, uint32_t use, uint32_t threads,
                    memory::NodeIndex to, bool next_touch, uint32_t sharers);

/// One round of one use by threads on `from`, with nobody else on the machine, the area on `to`.
double cost_of_use(const MemorySituation& situation, uint32_t use, uint32_t threads,
                   memory::NodeIndex from, memory::NodeIndex to);

/// Fills in the plan's cost. False: no memory, or a figure that it takes is unknown.
bool cost_of_plan(const MemorySituation& situation, const uint32_t* sharers, PlanScratch* scratch,
                  MemoryPlan* plan);

/// Is everything known that a plan may take?
bool costs_are_known(const MemorySituation& situation);

}  // namespace bosk::policies
