// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads, data, or both? What a redistribution had best do, by the costs of memory and the expected re-use
// (2009, section 4.4; docs/costs.md).
//
//     node 0 | 1      team A on 0 uses a (on 0), b and c (on 1):
//     nothing         A reads b and writes c over the link, for as many rounds as are expected
//     threads         A goes to 1; now a is remote
//     data            b and c come to 0, at once or when they are touched next
//     one area        c comes: writing it over there costs most
//     mixed           A goes to 1, and a comes after it: least data moved, and all of it local
//     spread          where few threads run: pages go round all nodes, for the bandwidth of all (table 1)
//
// Algorithm: each of these is made into a plan for all entities at once, because they compete for nodes (four teams that
// change places must all go) and for their memory; a plan's time is what moving costs once and what the accesses cost in
// all rounds. The cheapest wins, nothing first where it is no worse by more than a margin. Then each entity may take what
// suits it best of all plans, if all of that together is cheaper still.
//
// The time of a plan, of an entity's threads on node f with areas on nodes m:
//   - its threads: sum over areas of reads · bytes / (threads · one thread's read bandwidth f to m), writes likewise;
//     threads that share PUs count for less;
//   - the nodes' memory: m needs the sum over all who use it of bytes / (bandwidth of all PUs of f to m), with the figures
//     for a machine at work where more than half of its nodes are; nobody waits for m longer than all together need;
//   - an entity takes the larger of the two.
//
// A pure function: no state, no clock, no machine but what is handed in.
//
// Cost: O(uses · plans + entities · nodes + areas log areas).
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"
#include "memory/costs.h"

namespace bosk::policies {

/// What may be done. As bits: 1 << action.
enum class MemoryAction : uint8_t {
  kNothing,
  kThreads,
  kDataNow,
  kNextTouch,
  kOneArea,  ///< of each entity, the one that pays most
  kMixed,    ///< each entity and each area as it pays
  kSpread,
};
constexpr uint32_t kMemoryActions = 7;
constexpr uint32_t kAnyAction = (1u << kMemoryActions) - 1;
constexpr uint32_t action_bit(MemoryAction action) { return 1u << static_cast<unsigned>(action); }
/// "nothing", "threads", "data now", "next touch", "one area", "mixed", "spread".
const char* memory_action_name(MemoryAction action);

/// Memory that lies on one node; an area with pages on several is several of these.
struct UsedArea {
  memory::NodeIndex node;
  uint64_t bytes;
  bool movable = true;
  bool markable = true;  ///< for next-touch
  memory::PageKind pages = memory::PageKind::kBase;
};

/// A bubble or a thread, as far as it moves as a whole. Its uses are adjacent.
struct UsingEntity {
  memory::NodeIndex node;  ///< where its threads are
  uint32_t threads;
  uint32_t first_use;
  uint32_t n_uses;
  bool movable = true;
};

/// An entity goes over an area in every round.
struct AreaUse {
  uint32_t area;
  float reads = 1;    ///< how often each byte is read in a round
  float writes = 0;   ///< and written
  float touched = 1;  ///< share of the area that is touched at all, 0 … 1
};

struct NodeState {
  uint64_t free_bytes;
  uint32_t pus;
  uint32_t other_threads;  ///< that run there and are not of these entities
};

struct MemorySituation {
  const memory::CostTable* costs;
  const UsingEntity* entities;
  uint32_t n_entities;
  const UsedArea* areas;
  uint32_t n_areas;
  const AreaUse* uses;
  uint32_t n_uses;
  const NodeState* nodes;  ///< costs->n_nodes
  /// The expected re-use: how many times everything is gone over before all of this is decided again.
  double rounds = 1;
  uint32_t movers = 1;  ///< threads of a node that move pages side by side
  uint32_t allowed = kAnyAction;
  double margin = 0.02;  ///< what is done must save this share of doing nothing
};

/// The numbers of one plan: ns, of a thread on average.
struct PlanCost {
  bool possible = false;
  double once_ns = 0;    ///< moving threads, data and marks
  double rounds_ns = 0;  ///< accesses, all rounds
  double total_ns() const { return once_ns + rounds_ns; }
};

struct EntityPlan {
  memory::NodeIndex node;
  MemoryAction action;  ///< what the plan means for this one; of one area or several: kDataNow
};

/// In place of a node: the area's pages go round all nodes that have PUs.
constexpr memory::NodeIndex kSpreadOut = UINT32_MAX - 1;

struct AreaPlan {
  memory::NodeIndex node;  ///< where it will be; or kSpreadOut
  bool next_touch;         ///< it is marked, and goes when it is touched
};

/// The answer. Its arrays are the caller's to give back.
struct MemoryDecision {
  MemoryAction action = MemoryAction::kNothing;
  /// What each would cost: for the trace and the report.
  PlanCost costs[kMemoryActions];
  base::MappedArray<EntityPlan> entities;
  base::MappedArray<AreaPlan> areas;
  /// A cost that was needed is unknown, or there is no memory to think with: nothing is done.
  bool unknown = false;

  const PlanCost& chosen() const { return costs[static_cast<unsigned>(action)]; }
  const PlanCost& nothing() const { return costs[0]; }
  void release() {
    entities.release();
    areas.release();
  }
};

/// May be called with preemption off. The decision must be fresh or released.
void decide_memory(const MemorySituation& situation, MemoryDecision* decision);

}  // namespace bosk::policies
