// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many pages one touch brings. Pages that are touched one after the other, upwards or downwards,
// double the window each time; a touch elsewhere begins with one page again.
#pragma once

#include "memory/next_touch/region.h"

namespace bosk::memory {

struct Window {
  uint32_t first;  ///< pages of the chunk, [first, end)
  uint32_t end;
  uint32_t size;  ///< as many as were meant: there may be fewer before the next 2 MiB begin
};

/// What the touch of `page`, which is marked, shall bring, within pages [low, high) of the chunk that
/// belong to the region. `before` and `after`: the chunks beside it, or null.
inline Window choose_window(const Region& region, const Chunk& chunk, const Chunk* before,
                            const Chunk* after, uint32_t page, uint32_t low, uint32_t high) {
  uint32_t size = region.window;
  bool downwards = false;
  if (size == 0) {
    const uint32_t last = chunk.window.load(std::memory_order_relaxed);
    const uint32_t last_low = chunk.low.load(std::memory_order_relaxed);
    const uint32_t last_high = chunk.high.load(std::memory_order_relaxed);
    if (last != 0 && page >= last_high && page - last_high <= last) {
      size = last * 2;
    } else if (last != 0 && page < last_low && last_low - page <= last + 1) {
      size = last * 2;
      downwards = true;
    } else if (last == 0 && page == low && before != nullptr &&
               before->high.load(std::memory_order_relaxed) == kChunkPages) {
      size = before->window.load(std::memory_order_relaxed) * 2;
    } else if (last == 0 && page + 1 == high && after != nullptr &&
               after->window.load(std::memory_order_relaxed) != 0 &&
               after->low.load(std::memory_order_relaxed) == 0) {
      size = after->window.load(std::memory_order_relaxed) * 2;
      downwards = true;
    }
    if (size == 0) size = 1;
  }
  if (size > kChunkPages) size = kChunkPages;

  Window window;
  window.size = size;
  if (downwards) {
    window.end = page + 1;
    window.first = window.end - low > size ? window.end - size : low;
  } else {
    window.first = page;
    window.end = high - page > size ? page + size : high;
  }
  if (region.granularity > 1) {
    window.first -= window.first % region.granularity;
    window.end += (region.granularity - window.end % region.granularity) % region.granularity;
    if (window.first < low) window.first = low;
    if (window.end > high) window.end = high;
  }
  return window;
}

}  // namespace bosk::memory
