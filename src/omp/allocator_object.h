// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An allocator that is not a predefined one over malloc. Private to allocator.cpp, blocks.cpp and the
// environment, which has one of its own.
#pragma once

#include <atomic>

#include "omp/allocator_traits.h"
#include "omp/small_blocks.h"

namespace bosk::omp {

struct Allocator {
  AllocatorTraits traits;
  std::atomic<size_t> used{0};  ///< bytes of the pool that are given away
  SmallBlocks small{};          ///< if its pages are placed or pinned

  /// relaxed throughout: the counter guards no memory, only a sum.
  bool take(size_t size) {
    if (traits.pool_size == SIZE_MAX) return true;
    size_t before = used.load(std::memory_order_relaxed);
    do {
      if (size > traits.pool_size - before) return false;
    } while (!used.compare_exchange_weak(before, before + size, std::memory_order_relaxed));
    return true;
  }
  void give_back(size_t size) {
    if (traits.pool_size != SIZE_MAX) used.fetch_sub(size, std::memory_order_relaxed);
  }
};

}  // namespace bosk::omp
