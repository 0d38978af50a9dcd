// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The addresses of the heaps: one range, cut into equal parts, one for each node.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/heap_library.h"
#include "memory/machine_nodes.h"

namespace bosk::memory {

struct HeapRegions {
  uintptr_t base = 0;
  uintptr_t bytes = 0;  ///< of all nodes together; 0: there are none
  unsigned shift = 0;   ///< of addresses to numbers of nodes

  bool has(uintptr_t address) const { return address - base < bytes; }
  NodeIndex node_of(uintptr_t address) const {
    return static_cast<NodeIndex>((address - base) >> shift);
  }
};

/// Reserves addresses for every node that may be used, tells the kernel where their pages shall lie, and gives them
/// to the library as arenas, whose numbers are in arenas[node]; -1: none. False: nothing could be had.
bool reserve_heaps(const MachineNodes& nodes, const HeapLibrary& library, HeapRegions* regions,
                   int* arenas);

}  // namespace bosk::memory
