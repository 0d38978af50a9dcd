// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The addresses of the heaps: one range, cut into equal parts, one for each node.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "memory/heap_library.h"
#include "memory/machine_nodes.h"

namespace bosk::memory {

struct HeapRegions {
  static constexpr unsigned kPageShift = 12;

  uintptr_t base = 0;
  uintptr_t bytes = 0;  ///< of all nodes together; 0: there are none
  unsigned shift = 0;   ///< of addresses to numbers of nodes
  /// One for each 4 KiB, not 0: a block has begun there once. Only such pages may be read to find out what a
  /// pointer is. Elsewhere mimalloc may never have asked for memory; what it has given back reads as
  /// zeros. Relaxed: whoever has a block, has seen its page noted; who has a wild pointer may find either.
  std::atomic<uint8_t>* headers = nullptr;

  bool has(uintptr_t address) const { return address - base < bytes; }
  bool may_have_header(uintptr_t address) const {
    return has(address) &&
           headers[(address - base) >> kPageShift].load(std::memory_order_relaxed) != 0;
  }
  void note_header(uintptr_t address) const {
    std::atomic<uint8_t>& noted = headers[(address - base) >> kPageShift];
    if (noted.load(std::memory_order_relaxed) == 0) noted.store(1, std::memory_order_relaxed);
  }
  NodeIndex node_of(uintptr_t address) const {
    return static_cast<NodeIndex>((address - base) >> shift);
  }
};

/// So many nodes can have a heap; those beyond, of invented machines, do without.
constexpr uint32_t kMostHeaps = 1 << 11;

/// Reserves addresses for every node that may be used, tells the kernel where their pages shall lie, and gives them
/// to the library as arenas, whose numbers are in arenas[node]; -1: none. False: nothing could be had.
bool reserve_heaps(const MachineNodes& nodes, const HeapLibrary& library, HeapRegions* regions,
                   int* arenas);

}  // namespace bosk::memory
