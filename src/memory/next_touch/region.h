// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records of what is marked: regions of whole pages in one mapping, and the table of them by address.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "base/pages.h"
#include "memory/next_touch/kernel_nodes.h"
#include "memory/next_touch/next_touch.h"

namespace bosk::memory {

constexpr uint32_t kChunkPages =
    512;  ///< 2 MiB of addresses: what one lock covers, and one window at most
constexpr size_t kChunkBytes = kChunkPages * base::kPage;

/// The state of 2 MiB of addresses, aligned. Its lock (lock_of_chunk) owns it, or the gate's writer.
struct Chunk {
  uint64_t
      marked[kChunkPages / 64];  ///< bit set: marked; with userfaultfd the data are in the shadow
  // What the last touches brought: pages [low, high), and how many at once. Neighbours look at them
  // without the lock: it is a guess in any case. relaxed.
  std::atomic<uint16_t> low;
  std::atomic<uint16_t> high;
  std::atomic<uint16_t> window;
  uint16_t stale;  ///< pages brought whose old copy is still in the shadow

  bool is_marked(uint32_t page) const { return (marked[page / 64] >> (page % 64) & 1) != 0; }
  void set(uint32_t first, uint32_t count, bool value);
  /// The end of the run of pages from `first` that are all marked, or all not, at most `limit`.
  uint32_t run_end(uint32_t first, uint32_t limit) const;
  uint32_t count(uint32_t first, uint32_t end) const;
};

struct Backend;

struct Region {
  uintptr_t begin;
  uintptr_t end;
  const Backend* backend;
  uintptr_t shadow;  ///< where the data of `begin` are set aside; 0: the backend has none
  uint32_t window;   ///< of the options
  uint32_t granularity;
  int prot;  ///< of the mapping
  bool on_write;
  bool in_slot;    ///< the shadow is one (slots.h): of a region that is marked as a whole, once
  bool all_nodes;  ///< no policy says where pages may go
  NodeMask nodes;  ///< else: there
  std::atomic<uint64_t> n_marked;
  size_t bytes;  ///< of this record
  Region* next;  ///< in the list of free records
  uint32_t n_chunks;
  Chunk chunks[];

  uintptr_t chunk_base() const { return begin & ~(kChunkBytes - 1); }
  Chunk& chunk_of(uintptr_t at) { return chunks[(at - chunk_base()) / kChunkBytes]; }
  uintptr_t shadow_of(uintptr_t at) const { return shadow + (at - begin); }
  bool like(const NextTouchOptions& options, const Backend* other) const {
    return backend == other && on_write == options.on_write;
  }
};

inline uint32_t page_in_chunk(uintptr_t at) {
  return static_cast<uint32_t>(at % kChunkBytes / base::kPage);
}

/// Sorted by address; no two overlap. Readers hold the gate shared, who changes it alone.
class RegionTable {
 public:
  /// The region that holds `at`, or null.
  Region* find(uintptr_t at) const;
  /// The first region that ends behind `at`, or null.
  Region* first_after(uintptr_t at) const;
  bool insert(Region* region);
  void remove(const Region* region);
  uint32_t size() const { return size_; }
  Region* operator[](uint32_t i) const { return regions_[i]; }

 private:
  uint32_t position(uintptr_t at) const;
  Region** regions_ = nullptr;
  uint32_t size_ = 0;
  uint32_t room_ = 0;
};

/// A record with nothing marked, or null. The gate is held alone, here and below.
Region* new_region(uintptr_t begin, uintptr_t end);
void free_region(Region* region);

}  // namespace bosk::memory
