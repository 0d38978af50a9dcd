// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Heaps: one region of addresses for each node, reserved at the start, in which mimalloc keeps small blocks
// for every thread by itself. What is ours is where the memory lies.
//
// A block has 16 bytes before it: its size, its node, and a word that says that it is in use. So a block that is
// freed twice is told from one that is not, and statistics need not ask anybody.
//
// Who owns what:
//   - `my_heaps`: the thread's own (the identity's: a user-level thread's goes with it). Its heaps are
//     mimalloc's, made on first use, one for each node. When the thread ends, our key's destructor lets go of them
//     before mimalloc's own takes them back: our key is the older one, and keys go in order. What a later destructor
//     allocates comes as whole pages.
//   - `used` counters: written by the thread whose they are, summed up by anybody (relaxed: figures). Blocks may be
//     freed elsewhere, so one counter alone may be below zero. Records of threads that have ended
//     keep their counts, and are used again.
//   - everything else changes under `lock`, which a fork holds.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/machine_nodes.h"

namespace bosk::memory {

/// Blocks of at most so much come from a heap; larger ones are pages of their own.
constexpr size_t kMostInHeap = size_t{1} << 20;
constexpr size_t kHeapAlignment = 16;

/// Null: there is no memory on the node, there are no heaps (no mimalloc), or it cannot be had from one here: take
/// pages. `bytes` ≤ kMostInHeap. `alignment`: a power of two, at most kMostInHeap.
void* heap_allocate(const MachineNodes& nodes, NodeIndex node, size_t bytes, size_t alignment,
                    bool zeroed);
/// The same, near the caller: on the node of its CPU, or the next one that has room.
void* heap_allocate_here(const MachineNodes& nodes, size_t bytes, size_t alignment, bool zeroed);

enum class Freed : uint8_t {
  kYes,
  kNoBlock,   ///< in a heap, but not in use: freed before, or never a block
  kElsewhere  ///< not in a heap at all
};
Freed heap_free(void* block);

/// Of a block that is in use.
struct HeapBlock {
  size_t bytes;
  NodeIndex node;
};
Freed heap_look_at(const void* block, HeapBlock* found);
/// It has another size now. False: it cannot grow where it is.
bool heap_resize(void* block, size_t bytes);

/// Addresses reserved for the node, and bytes of blocks in use there.
struct HeapUse {
  uint64_t reserved;
  uint64_t used;
};
HeapUse heap_use(NodeIndex node);

/// Gives memory back that the calling thread's heaps, and heaps of threads that have ended, do not need.
void heap_trim();

void lock_heaps_for_fork();
void unlock_heaps_after_fork();

}  // namespace bosk::memory
