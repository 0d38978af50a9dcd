// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One batch of pages, and the memory to work on it. Private to migration*.cpp.
#pragma once

#include "memory/migration.h"

namespace bosk::memory {

/// `node`: for all; or `nodes`: for each. The pages are adjacent.
struct Batch {
  char* first;
  uint32_t count;
  NodeIndex node;
  const NodeIndex* nodes;
  PageOutcome* outcomes;
  bool elsewhere;  ///< see Migration
};

/// What move_batch() works with: arrays of so many pages.
struct Workspace {
  uint32_t most = 0;
  void** address = nullptr;
  int* target = nullptr;     ///< kernel numbers
  int* status = nullptr;     ///< what the kernel says
  uint32_t* page = nullptr;  ///< which page of the batch an entry is about
  uint8_t* tries = nullptr;

  static constexpr size_t kBytesPerPage = sizeof(void*) + 3 * sizeof(int) + 1;
  /// Lays the arrays out in `memory`, kBytesPerPage for each of `pages`.
  void lay_out(void* memory, uint32_t pages);
};

size_t page_bytes();
long call_move_pages(unsigned long count, void** pages, const int* nodes, int* status);

/// `batch.count` is at most `space.most`.
Moved move_batch(const Batch& batch, const Workspace& space);

}  // namespace bosk::memory
