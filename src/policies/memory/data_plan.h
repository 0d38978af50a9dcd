// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From who uses which areas to what is done about it: puts the question of decision.h together from the memory manager's
// books, and moves or marks the areas that the answer names.
//
//     users: 4 threads on node 0 use a, b (on 1)       1 thread on node 1 uses c (half on 0, half on 1)
//     question: areas in parts of one node each: a, b, c/0, c/1; free memory and threads of the nodes; costs
//     answer: move a to 0; mark c
//
// - An area with pages on several nodes is a part for each of them, and users go over all parts alike.
// - Memory that somebody has put round several nodes on purpose stays, as does what is on its way by next-touch.
// - An area of whose users more than a quarter are nobody knows where stays.
//
// Preemption is on: books are locked, and the kernel is asked where pages are.
#pragma once

#include "base/memory_moves_setting.h"
#include "memory/area_migration.h"
#include "memory/area_table.h"
#include "policies/memory/decision.h"

namespace bosk::policies {

/// Threads that are on one node and use the same memory. Their uses are adjacent.
struct MemoryUser {
  memory::NodeIndex node;  ///< memory::kNoNode: nobody knows
  uint32_t threads;
  uint32_t first_use;
  uint32_t n_uses;
};

struct MemoryUse {
  memory::AreaUse use;
  float share;  ///< of the area, what these threads go over
};

struct MemoryQuestion {
  memory::AreaTable* areas;
  const memory::CostTable* costs;
  const MemoryUser* users;
  uint32_t n_users;
  const MemoryUse* uses;
  uint32_t n_uses;
  const NodeState* nodes;
  uint32_t allowed = kAnyAction;
};

/// Who does not say how often it goes over its memory does so this many times.
constexpr uint32_t kRoundsIfUnknown = 8;
constexpr uint32_t rounds_of(uint32_t told) {
  return told == 0 || told == topology::kNone ? kRoundsIfUnknown : told;
}

struct AreaMove {
  memory::AreaInfo area;
  /// Where all of it goes; kSpreadOut; or memory::kNoNode: parts go to different nodes, as `targets` says.
  memory::NodeIndex to;
  bool next_touch;
  uint32_t first_target;  ///< in DataPlan::targets, one for each node
};

/// The answer. release() gives back its arrays.
struct DataPlan {
  MemoryAction action = MemoryAction::kNothing;
  PlanCost costs[kMemoryActions];
  bool unknown = false;  ///< see MemoryDecision
  double rounds = 0;
  base::MappedArray<AreaMove> moves;
  base::MappedArray<memory::NodeIndex> targets;

  void release() {
    moves.release();
    targets.release();
  }
};

/// What may be done when all threads stay where they are: bits of actions.
uint32_t data_actions(base::MemoryMoves moves);

/// The plan must be fresh or released. False: no memory.
bool plan_data(const MemoryQuestion& question, DataPlan* plan);

/// What was done.
struct DataMoved {
  memory::Moved pages;
  uint32_t areas = 0;   ///< moved now
  uint32_t marked = 0;  ///< for next-touch
  uint32_t stayed = 0;  ///< were to move, and could not: no backend, no memory

  bool anything() const { return areas + marked != 0; }
};
/// Areas that have gone meanwhile are left out.
void move_data(memory::AreaTable& areas, const DataPlan& plan, DataMoved* moved);

}  // namespace bosk::policies
