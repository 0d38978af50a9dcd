// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tells the kernel where pages that nobody has touched yet shall lie.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/machine_nodes.h"

namespace bosk::memory {

/// How pages of a range are to be placed. `nodes` (n_nodes of them, usable ones) matter to kInterleaved
/// and kWeighted, `node` to kOnNode.
struct PagePlan {
  enum class Kind : uint8_t { kAsSystem, kLocal, kOnNode, kInterleaved, kWeighted };
  Kind kind = Kind::kAsSystem;
  NodeIndex node = topology::kNone;
  const NodeIndex* nodes = nullptr;
  uint32_t n_nodes = 0;
};

/// The node first, others when it is full: a policy that leaves no other gets the process killed then.
bool prefer_node(const MachineNodes& nodes, void* at, size_t bytes, NodeIndex node);

/// Places whole pages (of size `page`). False: the kernel refused.
bool place_pages(const MachineNodes& nodes, char* at, size_t bytes, size_t page,
                 const PagePlan& plan);

/// How many bytes of such a range will lie on each node, if nobody is in the way; nowhere, where that depends on who
/// touches them. (On a machine of one node all do.)
void expect_pages(const MachineNodes& nodes, size_t bytes, size_t page, const PagePlan& plan,
                  uint64_t* bytes_on);

}  // namespace bosk::memory
