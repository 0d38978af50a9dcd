// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages of arrays that come and go, kept for the next ones.
//
// To give pages back to the kernel interrupts every CPU that runs a thread of the program, and waits for all of them: some
// microseconds with a few CPUs, more with many, and with those of an emulator seconds. A decision about memory takes some fifty
// arrays for a moment.
//
// Blocks of 4 to 64 KiB, by powers of two, at most 1.2 MiB in all. Nobody waits: whoever finds the store in use, by another thread or
// by the one that a signal has interrupted, goes to the kernel, and in the child of a fork that found it so everybody does.
#pragma once

#include <stdint.h>
#include <string.h>

#include <new>

#include "base/pages.h"
#include "base/spinlock.h"

namespace bosk::base {

class SparePages {
 public:
  /// Null: none. What is in it is whatever was. O(1).
  void* take(size_t bytes) {
    const uint32_t size = size_class(bytes);
    if (size == kSizes || !lock_.try_lock()) return nullptr;
    Block* block = first_[size];
    if (block != nullptr) {
      first_[size] = block->next;
      --count_[size];
    }
    lock_.unlock();
    return block;
  }
  /// False: it stays the caller's. O(1).
  bool give(void* at, size_t bytes) {
    const uint32_t size = size_class(bytes);
    if (at == nullptr || size == kSizes || !lock_.try_lock()) return false;
    const bool keep = count_[size] < (size == 0 ? kMostPages : kMostLarger);
    if (keep) {
      first_[size] = new (at) Block{first_[size]};
      ++count_[size];
    }
    lock_.unlock();
    return keep;
  }

 private:
  struct Block {
    Block* next;
  };
  static constexpr uint32_t kSizes = 5;
  static constexpr uint32_t kMostPages = 64;
  static constexpr uint32_t kMostLarger = 8;

  /// kSizes: of none.
  static uint32_t size_class(size_t bytes) {
    for (uint32_t size = 0; size < kSizes; ++size)
      if (bytes == kPage << size) return size;
    return kSizes;
  }

  SpinLock lock_;  ///< guards all of it; only ever tried
  Block* first_[kSizes] = {};
  uint32_t count_[kSizes] = {};
};

inline constinit SparePages spare_pages;

/// As map_pages(): zeroed.
inline void* take_pages(size_t bytes) {
  void* kept = spare_pages.take(bytes);
  return kept != nullptr ? memset(kept, 0, bytes) : map_pages(bytes);
}

inline void give_pages(void* at, size_t bytes) {
  if (!spare_pages.give(at, bytes)) unmap_pages(at, bytes);
}

}  // namespace bosk::base
