// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of the three kinds of blocks it is: of a heap, of pages, of the system's.
#include "memory/allocate.h"

#include <bosk/error.h>
#include <string.h>

#include "base/cpu.h"
#include "memory/heaps.h"
#include "memory/page_blocks.h"
#include "memory/page_nodes.h"
#include "memory/system_blocks.h"

namespace bosk::memory {
namespace {

constexpr size_t kSystemAlignment = 16;

void* pages_for(AreaTable& areas, size_t bytes, size_t alignment, NodeIndex node) {
  PageRequest request;
  request.bytes = bytes != 0 ? bytes : 1;
  request.alignment = alignment;
  if (node != kNone) {
    request.placement = Placement::kOnNode;
    request.node = node;
  }
  void* block = nullptr;
  return allocate_pages(areas, request, &block) == BOSK_OK ? block : nullptr;
}

/// A block of pages begins there.
bool find_pages(const AreaTable& areas, const void* block, AreaInfo* area) {
  const auto at = reinterpret_cast<uintptr_t>(block);
  return areas.look_up(at, area) && area->begin == at && area->is_own();
}

}  // namespace

void* allocate(AreaTable& areas, size_t bytes, size_t alignment, bool zeroed) {
  if (BOSK_LIKELY(bytes <= kMostInHeap)) {
    void* block = heap_allocate_here(areas.nodes(), bytes, alignment, zeroed);
    if (BOSK_LIKELY(block != nullptr)) return block;
    if (alignment <= kSystemAlignment) block = system_allocate(bytes, kSystemAlignment, zeroed);
    if (block != nullptr) return block;
  }
  return pages_for(areas, bytes, alignment, kNone);
}

void* allocate_on(AreaTable& areas, NodeIndex node, size_t bytes) {
  if (bytes <= kMostInHeap) {
    void* block = heap_allocate(areas.nodes(), node, bytes, kHeapAlignment, false);
    if (block != nullptr) return block;
  }
  return pages_for(areas, bytes, 0, node);
}

int release(AreaTable& areas, void* block) {
  switch (heap_free(block)) {
    case Freed::kYes:
      return BOSK_OK;
    case Freed::kNoBlock:
      return BOSK_ENOAREA;
    case Freed::kElsewhere:
      break;
  }
  // Those of the system may begin with a page, too, but not with an area of ours.
  if (reinterpret_cast<uintptr_t>(block) % page_size() == 0 && free_pages(areas, block) == BOSK_OK)
    return BOSK_OK;
  return system_free(block) ? BOSK_OK : BOSK_ENOAREA;
}

int size_of(AreaTable& areas, const void* block, size_t* bytes) {
  HeapBlock in_heap;
  switch (heap_look_at(block, &in_heap)) {
    case Freed::kYes:
      *bytes = in_heap.bytes;
      return BOSK_OK;
    case Freed::kNoBlock:
      return BOSK_ENOAREA;
    case Freed::kElsewhere:
      break;
  }
  AreaInfo area;
  if (find_pages(areas, block, &area)) {
    *bytes = area.bytes();
    return BOSK_OK;
  }
  return system_size(block, bytes) ? BOSK_OK : BOSK_ENOAREA;
}

void* reallocate(AreaTable& areas, void* block, size_t bytes, int* error) {
  size_t before;
  *error = size_of(areas, block, &before);
  if (*error != BOSK_OK) return nullptr;
  *error = BOSK_ENOMEM;
  HeapBlock in_heap;
  AreaInfo area;
  void* moved;
  if (heap_look_at(block, &in_heap) == Freed::kYes) {
    if (bytes <= kMostInHeap && heap_resize(block, bytes)) return block;
    moved = allocate_on(areas, in_heap.node, bytes);
  } else if (find_pages(areas, block, &area)) {
    if (bytes <= before && bytes > before / 2) return block;
    moved = area.node != kNone ? allocate_on(areas, area.node, bytes)
                               : allocate(areas, bytes, 0, false);
  } else {
    moved = allocate(areas, bytes, 0, false);
  }
  if (moved == nullptr) return nullptr;
  memcpy(moved, block, before < bytes ? before : bytes);
  release(areas, block);
  *error = BOSK_OK;
  return moved;
}

}  // namespace bosk::memory
