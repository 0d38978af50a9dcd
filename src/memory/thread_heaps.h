// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread has of the heaps: one of mimalloc's for each node, and a few blocks in its hand.
//
// The hand holds blocks that the thread has freed, by classes of sizes, all on the node that it is on: who allocates
// and frees in turn does not even ask mimalloc. A block's class is fixed when it is made and says how much it can hold.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "base/atomics_policy.h"
#include "base/cpu.h"
#include "memory/fork_gate.h"
#include "memory/heap_library.h"
#include "memory/heap_regions.h"
#include "memory/heaps.h"

namespace bosk::memory {

/// Before each block.
struct alignas(kHeapAlignment) BlockHeader {
  uint32_t bytes;
  uint32_t size_class : 8;  ///< kNoClass: too large, or aligned
  uint32_t node : 11;
  uint32_t offset : 13;  ///< of the user's bytes from the start of mimalloc's block, in units of 16
  uint64_t in_use;       ///< kInUse ^ address; anything else: it is not
};
constexpr size_t kMostAligned = size_t{1} << 16;
static_assert(sizeof(BlockHeader) == kHeapAlignment &&
              kMostAligned / kHeapAlignment < size_t{1} << 13 && kMostHeaps <= 1 << 11);

inline BlockHeader* header_of(const void* block) {
  return static_cast<BlockHeader*>(const_cast<void*>(block)) - 1;
}
inline uint64_t mark_of(const void* block) {
  constexpr uint64_t kInUse = 0x626f736b68656170;
  return kInUse ^ reinterpret_cast<uintptr_t>(block);
}

// Classes of sizes: steps of 64 bytes up to 1 KiB, then four to a doubling, to 64 KiB.
constexpr size_t kMostInHand = size_t{64} << 10;
constexpr uint32_t kFineClasses = 16;
constexpr uint32_t kClasses = kFineClasses + 4 * 6;
constexpr uint32_t kNoClass = 255;

/// `bytes` ≤ kMostInHand.
inline uint32_t class_of(size_t bytes) {
  if (BOSK_LIKELY(bytes <= 1024)) return static_cast<uint32_t>((bytes - (bytes != 0)) / 64);
  const unsigned log = 63 - static_cast<unsigned>(__builtin_clzll(bytes - 1));  // of 1 KiB: 10
  return kFineClasses + (log - 10) * 4 + static_cast<uint32_t>((bytes - 1) >> (log - 2) & 3);
}
/// The most bytes of the class.
inline size_t size_of_class(uint32_t size_class) {
  if (size_class < kFineClasses) return size_t{64} * (size_class + 1);
  const uint32_t step = size_class - kFineClasses;
  return (size_t{4} + step % 4 + 1) << (8 + step / 4);
}

/// What a thread has on one node.
struct NodeHeap {
  MiHeap* heap;
  std::atomic<int64_t> used;  ///< without what the hand has counted
};

/// Freed blocks of one class.
struct Hand {
  void* top;      ///< chained by their first words
  uint32_t room;  ///< for so many more
};

/// Aligned, so that two threads never write to the same line.
struct alignas(128) ThreadHeaps {
  ThreadHeaps* next;            ///< of all that there ever were
  ThreadHeaps* next_free;       ///< of those whose thread has ended
  std::atomic<NodeIndex> here;  ///< the node that it was on when it looked last
  uint32_t until_look;
  std::atomic<int64_t> used_here;  ///< on that node, by what went through the hand
  bool listed;
  ForkGate<base::StdAtomics>::Mark inside;  ///< mimalloc
  Hand hand[kClasses];

  NodeHeap* on() { return reinterpret_cast<NodeHeap*>(this + 1); }
  // The owner alone writes: a load and a store, relaxed, are enough.
  static void add(std::atomic<int64_t>& sum, int64_t bytes) {
    sum.store(sum.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  void count(NodeIndex node, int64_t bytes) { add(on()[node].used, bytes); }
  /// 64 KiB for each class, or eight blocks.
  static uint32_t most_in_hand(uint32_t size_class) {
    constexpr uint32_t kBlocks = 8;
    const size_t fitting = kMostInHand / size_of_class(size_class);
    return fitting < kBlocks ? static_cast<uint32_t>(fitting) : kBlocks;
  }
};

extern constinit thread_local ThreadHeaps* my_heaps;
/// Empty until there are heaps; then constant. Who has a block, or heaps of its own, has seen it written.
extern constinit HeapRegions heap_regions;

/// Of a thread that ends, or is about to open the library: it has none, and gets none.
inline ThreadHeaps* const kNoHeaps = reinterpret_cast<ThreadHeaps*>(1);
inline bool has_heaps(const ThreadHeaps* mine) {
  return reinterpret_cast<uintptr_t>(mine) > reinterpret_cast<uintptr_t>(kNoHeaps);
}

/// From the hand; null: there is none in it, or it is time to look where the thread is.
inline void* take_from_hand(size_t bytes) {
  ThreadHeaps* mine = my_heaps;
  if (BOSK_UNLIKELY(bytes > kMostInHand || !has_heaps(mine))) return nullptr;
  Hand& hand = mine->hand[class_of(bytes)];
  void* block = hand.top;
  if (BOSK_UNLIKELY(block == nullptr || mine->until_look-- == 0)) return nullptr;
  hand.top = *static_cast<void**>(block);
  ++hand.room;
  BlockHeader* header = header_of(block);
  header->bytes = static_cast<uint32_t>(bytes);
  header->in_use = mark_of(block);
  ThreadHeaps::add(mine->used_here, static_cast<int64_t>(bytes));
  return block;
}

/// It is where blocks may be, so its header can be read: the header of a block, or anything.
inline bool may_be_block(const void* block) {
  const auto at = reinterpret_cast<uintptr_t>(block);
  return at % kHeapAlignment == 0 && heap_regions.may_have_header(at - sizeof(BlockHeader));
}
/// Of one that may be a block.
inline bool is_in_use(const BlockHeader* header, const void* block) {
  return header->in_use == mark_of(block);
}

/// Into the hand. False: it is no block of a heap here, or there is no room for it; nothing was done.
inline bool put_in_hand(void* block) {
  ThreadHeaps* mine = my_heaps;
  if (BOSK_UNLIKELY(!has_heaps(mine) || !may_be_block(block))) return false;
  BlockHeader* header = header_of(block);
  const uint32_t size_class = header->size_class;
  if (BOSK_UNLIKELY(!is_in_use(header, block) || size_class == kNoClass ||
                    header->node != mine->here.load(std::memory_order_relaxed)))
    return false;
  Hand& hand = mine->hand[size_class];
  if (BOSK_UNLIKELY(hand.room == 0)) return false;
  --hand.room;
  header->in_use = 0;
  *static_cast<void**>(block) = hand.top;
  hand.top = block;
  ThreadHeaps::add(mine->used_here, -static_cast<int64_t>(header->bytes));
  return true;
}

}  // namespace bosk::memory
