// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the nodes have, and what of it is left.
#pragma once

#include <stdint.h>

#include "memory/machine_nodes.h"

namespace bosk::memory {

constexpr uint64_t kUnknownAmount = UINT64_MAX;

struct NodeMemory {
  uint64_t total;  ///< bytes that it has; kUnknownAmount: nobody told
  uint64_t
      free;  ///< that could be had now; kUnknownAmount: the machine is invented, or nobody tells
};

/// Reads a file of /sys.
NodeMemory memory_of_node(const MachineNodes& nodes, NodeIndex node);

/// The text of a node's `meminfo`: free memory, and cached files that nobody has looked at for a while.
/// kUnknownAmount: it does not say.
uint64_t free_in_meminfo(const char* text);

/// The usable node with the most free memory; where nobody tells how much that is, the first. kNone: no node
/// is usable.
NodeIndex least_loaded_node(const MachineNodes& nodes);

}  // namespace bosk::memory
