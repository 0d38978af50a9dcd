// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a block's memory comes from, and its way back.
#include "omp/blocks.h"

#include <string.h>

#include "base/pages.h"
#include "omp/placed_memory.h"
#include "omp/process_nodes.h"

namespace bosk::omp {
namespace {

// BlockHeader::source, if it is not 0: in the last two bits what the rest is.
constexpr uintptr_t kMapping = 1;  // bytes of the mapping that begins at base
constexpr uintptr_t kSlot = 2;     // address of the chunk that base is a slot of
constexpr uintptr_t kSourceMask = 3;

void* block_from_slot(Allocator* allocator, const MemoryPlan& plan, uint32_t home, size_t size,
                      size_t alignment, bool zeroed) {
  size_t total;
  if (!total_of(size, alignment, &total) || total > SmallBlocks::kLargest) return nullptr;
  const SmallBlocks::Slot slot = allocator->small.take(total, plan, home, allocator->traits.pinned);
  if (slot.at == nullptr) return nullptr;
  void* block = put_header(slot.at, alignment, size, reinterpret_cast<AllocatorHandle>(allocator),
                           reinterpret_cast<uintptr_t>(slot.chunk) | kSlot);
  if (zeroed && !slot.fresh) memset(block, 0, size);
  return block;
}

void* block_from_pages(Allocator* allocator, const MemoryPlan& plan, size_t size,
                       size_t alignment) {
  const size_t page = page_size();
  const size_t offset = alignment < page ? align_up(sizeof(BlockHeader), alignment) : page;
  size_t bytes;
  if (__builtin_add_overflow(size, offset + page - 1, &bytes)) return nullptr;
  bytes &= ~(page - 1);
  void* base = map_placed(bytes, alignment, sizeof(BlockHeader), plan, allocator->traits.pinned);
  if (base == nullptr) return nullptr;
  return put_header(base, alignment, size, reinterpret_cast<AllocatorHandle>(allocator),
                    bytes | kMapping);
}

/// How many bytes the block can have where it is. 0: nobody knows (malloc).
size_t room_of(const void* block, const BlockHeader& header) {
  if ((header.source & kSourceMask) != kMapping) return 0;
  const size_t bytes = header.source & ~kSourceMask;
  return bytes - static_cast<size_t>(static_cast<const char*>(block) -
                                     static_cast<const char*>(header.base));
}

}  // namespace

void* make_block(Allocator* allocator, AllocatorHandle handle, size_t size, size_t alignment,
                 bool zeroed) {
  if (allocator == nullptr) return block_from_malloc(size, alignment, zeroed, handle);
  uint32_t home;
  const MemoryPlan plan = plan_here(allocator->traits, &home);
  if (plan.kind == MemoryPlan::Kind::kAnywhere && !allocator->traits.pinned) {
    return block_from_malloc(size, alignment, zeroed, reinterpret_cast<AllocatorHandle>(allocator));
  }
  if (void* block = block_from_slot(allocator, plan, home, size, alignment, zeroed)) return block;
  // A small block comes here where there is no room for a whole chunk, under a small limit on locked
  // memory for instance.
  const MemoryPlan own = size < page_size() ? plan_of_page(plan, home) : plan;
  return block_from_pages(allocator, own, size, alignment);
}

void free_pages_of(const BlockHeader& header) {
  const uintptr_t rest = header.source & ~kSourceMask;
  if ((header.source & kSourceMask) == kMapping) {
    base::unmap_pages(header.base, rest);
  } else {
    reinterpret_cast<Allocator*>(header.allocator)
        ->small.give_back(reinterpret_cast<SmallBlocks::Chunk*>(rest), header.base);
  }
}

void* resize_block(Allocator* allocator, void* block, size_t size, size_t alignment) {
  const BlockHeader header = *header_of(block);
  const size_t room = room_of(block, header);
  // Half of the room is not kept for what may never grow again.
  if (size <= room && size >= room / 2) {
    header_of(block)->size = size;
    return block;
  }
  const bool at_begin = static_cast<char*>(block) - static_cast<char*>(header.base) ==
                        static_cast<ptrdiff_t>(sizeof(BlockHeader));
  // malloc can grow in place where nothing is aligned.
  if (header.source == 0 && alignment <= kNaturalAlignment && at_begin) {
    size_t total;
    if (!total_of(size, kNaturalAlignment, &total)) return nullptr;
    void* base = realloc(header.base, total);
    if (base == nullptr) return nullptr;
    return put_header(base, kNaturalAlignment, size, header.allocator, 0);
  }
  void* moved = make_block(allocator, header.allocator, size, alignment, false);
  if (moved == nullptr) return nullptr;
  memcpy(moved, block, size < header.size ? size : header.size);
  free_block(header);
  return moved;
}

}  // namespace bosk::omp
