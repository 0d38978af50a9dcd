// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The nodes of the machine in use, for what talks to the kernel and is handed no MachineNodes: migration and probes.
//
// Everything here counts nodes as the machine's tree does (topology::Machine::nodes). Only what talks to
// the kernel translates.
#pragma once

#include "memory/machine_nodes.h"

namespace bosk::memory {

constexpr NodeIndex kNoNode = kNone;

/// From now on nodes are those of `machine`, which must live as long as the process. Until the first call a
/// node's index is its kernel number. False: no memory for the table; nothing changed. Any thread, at any
/// time; who translates meanwhile does so by the one machine or the other.
bool use_machine(const topology::Machine& machine);

/// The number that mbind(2) and move_pages(2) know the node by; -1: there is no such node.
int kernel_node_of(NodeIndex node);

/// The node of a kernel number; on an invented machine the first one that stands for it. kNoNode: none.
NodeIndex node_of_kernel(int kernel_node);

}  // namespace bosk::memory
