// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A machine while it is being made: what plan_machine.cpp finds out and lay_out_machine.cpp writes down.
// Private to those two.
#pragma once

#include "topology/raw_machine.h"

namespace bosk::topology {

constexpr uint32_t kMaxDepth = 200;  // Domain::depth has 8 bits

/// A domain while it is being made. Indices are positions in MachinePlan::drafts (order of discovery,
/// parents first).
struct Draft {
  uint16_t kinds = 0;
  Kind kind = Kind::kGroup;
  int8_t cpu_kind = -1;
  bool is_pu = false;
  uint32_t parent = kNone;
  uint32_t first_child = kNone;
  uint32_t last_child = kNone;
  uint32_t next = kNone;
  uint32_t n_children = 0;
  uint32_t os_index = kNone;
  uint32_t n_pus = 0;
  uint32_t first_pu = 0;
  uint32_t id = 0;  // breadth first
  uint32_t depth = 0;
  uint32_t height = 0;
  uint32_t rank = 0;
  uint32_t index = 0;
  uint32_t first_node = 0;
  uint32_t n_nodes = 0;
  uint64_t local_bytes = 0;
  uint64_t total_bytes = 0;
};

struct DraftNode {
  RawNode raw;
  uint32_t raw_index;  // kNone: made up
  uint32_t place;      // raw object, then draft, then logical number, as the work goes on
};

struct DraftLevel {
  Kind kind;
  Array<uint32_t> drafts;
};

struct MachinePlan {
  Array<uint32_t> pus_below;  // per object: allowed PUs
  Array<uint8_t> cpu_seen;    // per CPU number
  Array<uint8_t> node_seen;   // per node number
  Array<uint16_t> node_kind;  // per object: bit of kNode if a node with PUs is attached to it
  Array<uint32_t> draft_of;   // per object
  Array<Draft> drafts;
  Array<DraftNode> nodes;
  Array<uint32_t> by_id;        // drafts, breadth first
  Array<uint32_t> by_preorder;  // drafts, depth first
  Array<CpuKind> cpu_kinds;
  DraftLevel levels[kKinds];
  uint32_t level_order[kKinds] = {};
  uint32_t n_levels = 0;
  uint32_t n_level_ids = 0;
  uint32_t n_pus = 0;
  uint32_t n_excluded = 0;
  uint32_t n_os_cpus = 0;
  uint32_t n_os_nodes = 0;
  bool distances_assumed = false;
};

/// Steps 1 to 4 of build_machine(). False: `error` says why, or is empty when memory ran out.
bool plan_machine(const RawMachine& raw, const ProcessCpus* allowed, MachinePlan* plan,
                  Error* error);

/// Step 5: one block with everything. Uses up the plan. Null: out of memory, and `error` says so.
Machine* lay_out_machine(const RawMachine& raw, MachinePlan* plan, Error* error);

}  // namespace bosk::topology
