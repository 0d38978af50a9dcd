// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What hwloc tells of pairs of NUMA nodes: distances, and how fast one reaches the other's memory.
#pragma once

#include "topology/hwloc_library.h"
#include "topology/raw_machine.h"

namespace bosk::topology {

/// Fills in `raw->distances` and `raw->links` as far as they are told. `nodes`: in the order of raw->nodes.
/// False: out of memory.
bool read_node_pairs(const Hwloc& hwloc, hwloc_topology_t topology, const Array<hwloc_obj_t>& nodes,
                     RawMachine* raw);

}  // namespace bosk::topology
