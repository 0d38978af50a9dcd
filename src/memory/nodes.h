// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NUMA nodes as this layer names them, and the kernel's numbers for them.
//
// Everything here counts nodes as the machine's tree does (topology::Machine::nodes). Only what talks to
// the kernel translates. A machine that was invented has nodes that the kernel does not have: the system
// calls then go round the nodes that there are, so that bookkeeping can be tried anywhere.
#pragma once

#include <stdint.h>

#include "topology/machine.h"

namespace bosk::memory {

/// Position in topology::Machine::nodes.
using NodeIndex = uint32_t;
constexpr NodeIndex kNoNode = topology::kNone;

/// From now on nodes are those of `machine`, which must live as long as the process. Until the first call a
/// node's index is its kernel number. False: no memory for the table; nothing changed. Any thread, at any
/// time; who translates meanwhile does so by the one machine or the other.
bool use_machine(const topology::Machine& machine);

/// The machine of use_machine(); null: none yet.
const topology::Machine* machine_in_use();

/// The number that mbind(2) and move_pages(2) know the node by; -1: there is no such node.
int kernel_node_of(NodeIndex node);

/// The node of a kernel number; on an invented machine the first one that stands for it. kNoNode: none.
NodeIndex node_of_kernel(int kernel_node);

}  // namespace bosk::memory
