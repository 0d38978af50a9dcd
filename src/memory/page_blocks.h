// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks that are whole pages: each is an area of the table, can be attached, cut and moved.
#pragma once

#include "memory/area_table.h"

namespace bosk::memory {

enum class PageBacking : uint8_t { kOrdinary, kTransparentHuge, kReservedHuge };

struct PageRequest {
  size_t bytes = 0;
  size_t alignment = 0;  ///< a power of two; 0: a page
  Placement placement = Placement::kDefault;
  NodeIndex node = kNone;            ///< for kOnNode
  const NodeIndex* nodes = nullptr;  ///< for kInterleaved and kWeighted; null: all that are usable
  uint32_t n_nodes = 0;
  PageBacking pages = PageBacking::kOrdinary;
};

/// Zeroed memory, not touched yet. BOSK_EINVAL: nothing, or more than there are addresses; BOSK_ENODE: a node that
/// cannot be used; BOSK_ENOMEM: also if there are no reserved huge pages.
int allocate_pages(AreaTable& areas, const PageRequest& request, void** block);

/// BOSK_ENOAREA: no block of pages begins there (any more).
int free_pages(AreaTable& areas, void* block);

}  // namespace bosk::memory
