// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small blocks of an allocator whose pages are placed or pinned: they share pages with each other only.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "omp/memory_nodes.h"

namespace bosk::omp {

/// Chunks of 64 slots, the first of which describes the chunk. A chunk is placed and pinned as a whole
/// and stays until release_all(). Without locks: a fork may come at any time, and so may a preemption.
class SmallBlocks {
 public:
  /// The largest slot.
  static constexpr size_t kLargest = 2048;

  struct Chunk;
  struct Slot {
    void* at = nullptr;  ///< null: there is none
    Chunk* chunk = nullptr;
    size_t bytes = 0;
    bool fresh = false;  ///< all zero
  };

  /// A slot of at least `bytes` (at most kLargest), aligned to 16, on pages of this plan. `home` tells
  /// plans apart: chunks of another home are not used.
  Slot take(size_t bytes, const MemoryPlan& plan, uint32_t home, bool pinned);
  /// `at` is in a slot of the chunk.
  void give_back(Chunk* chunk, const void* at);
  /// All slots are gone with it.
  void release_all();

 private:
  static constexpr uint32_t kSmallestShift = 7;
  static constexpr uint32_t kClasses = 5;  // 128, 256, 512, 1024, 2048

  struct Class {
    std::atomic<Chunk*> newest{nullptr};
    std::atomic<Chunk*> latest{nullptr};  ///< where a slot was had or given back last: a good guess
  };
  Class classes_[kClasses];
};

}  // namespace bosk::omp
