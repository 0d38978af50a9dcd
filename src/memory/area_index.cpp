// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ordered map of areas.
#include "memory/area_index.h"

#include "base/pages.h"

namespace bosk::memory {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// Of words that may be pointers. release: who reads one finds what it points to mapped, and made.
template <typename T>
void copy(std::atomic<T>& to, const std::atomic<T>& from) {
  to.store(from.load(kRelaxed), std::memory_order_release);
}

uint32_t at_most(uint32_t n, uint32_t limit) { return n < limit ? n : limit; }

}  // namespace

/// The entry whose chunk has the address's predecessor, or its successor only.
uint32_t AreaIndex::position(const Directory& directory, uintptr_t address) {
  const uint32_t n = at_most(directory.count.load(kRelaxed), directory.capacity);
  uint32_t low = 0;
  uint32_t left = n;
  while (left > 1) {
    const uint32_t half = left / 2;
    if (directory.entry[low + half].bound.load(kRelaxed) <= address) low += half;
    left -= half;
  }
  return low;
}

uint32_t AreaIndex::n_at_or_before(const Chunk& chunk, uintptr_t address) {
  uint32_t low = 0;
  uint32_t left = at_most(chunk.count.load(kRelaxed), kPerChunk);
  // Areas of about one size, as the parts of an array are, are found at the first guess, others a probe later. Both ends are
  // read once: whatever a writer makes of them, the guess and the one behind it are inside.
  constexpr uint32_t kWorthAGuess = 8;
  if (left > kWorthAGuess) {
    const uintptr_t first = chunk.begin[0].load(kRelaxed);
    const uintptr_t last = chunk.begin[left - 1].load(kRelaxed);
    if (first <= address && address < last) {
      const uintptr_t each = (last - first) / (left - 1) + 1;
      const auto guess = static_cast<uint32_t>((address - first) / each);
      if (chunk.begin[guess].load(kRelaxed) > address) {
        left = guess;
      } else if (chunk.begin[guess + 1].load(kRelaxed) > address) {
        return guess + 1;
      } else {
        low = guess + 2;
        left -= low;
      }
    }
  }
  while (left != 0) {
    const uint32_t half = left / 2;
    if (chunk.begin[low + half].load(kRelaxed) <= address) {
      low += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return low;
}

Area* AreaIndex::at_or_before(uintptr_t address) const {
  const Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr || directory->count.load(kRelaxed) == 0) return nullptr;
  uint32_t at = position(*directory, address);
  // acquire, here and of the area: with the release in copy(), put() and add_chunk().
  const Chunk* chunk = directory->entry[at].chunk.load(std::memory_order_acquire);
  if (chunk == nullptr) return nullptr;
  uint32_t n = n_at_or_before(*chunk, address);
  if (n == 0) {
    if (at == 0) return nullptr;
    chunk = directory->entry[at - 1].chunk.load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    n = at_most(chunk->count.load(kRelaxed), kPerChunk);
    if (n == 0) return nullptr;
  }
  return chunk->area[n - 1].load(std::memory_order_acquire);
}

Area* AreaIndex::behind(uintptr_t address) const {
  const Directory* directory = directory_.load(kRelaxed);
  if (directory == nullptr || directory->count.load(kRelaxed) == 0) return nullptr;
  const uint32_t at = position(*directory, address);
  const Chunk* chunk = directory->entry[at].chunk.load(kRelaxed);
  const uint32_t n = n_at_or_before(*chunk, address);
  if (n < chunk->count.load(kRelaxed)) return chunk->area[n].load(kRelaxed);
  if (at + 1 == directory->count.load(kRelaxed)) return nullptr;
  return directory->entry[at + 1].chunk.load(kRelaxed)->area[0].load(kRelaxed);
}

void AreaIndex::put(Chunk& chunk, uint32_t at, uintptr_t begin, Area* area) {
  const uint32_t n = chunk.count.load(kRelaxed);
  for (uint32_t i = n; i > at; --i) {
    copy(chunk.begin[i], chunk.begin[i - 1]);
    copy(chunk.area[i], chunk.area[i - 1]);
  }
  chunk.begin[at].store(begin, kRelaxed);
  chunk.area[at].store(area, std::memory_order_release);
  chunk.count.store(n + 1, kRelaxed);
}

void AreaIndex::take_out(Chunk& chunk, uint32_t at) {
  const uint32_t n = chunk.count.load(kRelaxed) - 1;
  for (uint32_t i = at; i < n; ++i) {
    copy(chunk.begin[i], chunk.begin[i + 1]);
    copy(chunk.area[i], chunk.area[i + 1]);
  }
  chunk.count.store(n, kRelaxed);
}

/// Appends from[first …] to `to`.
void AreaIndex::move_tail(Chunk& from, uint32_t first, Chunk& to) {
  const uint32_t n = from.count.load(kRelaxed);
  uint32_t into = to.count.load(kRelaxed);
  for (uint32_t i = first; i < n; ++i, ++into) {
    copy(to.begin[into], from.begin[i]);
    copy(to.area[into], from.area[i]);
  }
  to.count.store(into, kRelaxed);
  from.count.store(first, kRelaxed);
}

AreaIndex::Chunk* AreaIndex::new_chunk() {
  if (free_chunks_ == nullptr) {
    constexpr uint32_t kBatch = 32;
    auto* made = static_cast<Chunk*>(base::map_pages(kBatch * sizeof(Chunk)));
    if (made == nullptr) return nullptr;
    for (uint32_t i = 0; i < kBatch; ++i) {
      made[i].next_free = free_chunks_;
      free_chunks_ = &made[i];
    }
  }
  Chunk* chunk = free_chunks_;
  free_chunks_ = chunk->next_free;
  chunk->count.store(0, kRelaxed);
  return chunk;
}

bool AreaIndex::add_chunk(uint32_t at, uintptr_t bound, Chunk* chunk) {
  Directory* directory = directory_.load(kRelaxed);
  const uint32_t n = directory != nullptr ? directory->count.load(kRelaxed) : 0;
  if (directory == nullptr || n == directory->capacity) {
    const uint32_t capacity = directory != nullptr ? 2 * directory->capacity : kFirstDirectory;
    auto* grown =
        static_cast<Directory*>(base::map_pages(sizeof(Directory) + capacity * sizeof(Entry)));
    if (grown == nullptr) return false;
    grown->capacity = capacity;
    for (uint32_t i = 0; i < n; ++i) {
      copy(grown->entry[i].bound, directory->entry[i].bound);
      copy(grown->entry[i].chunk, directory->entry[i].chunk);
    }
    grown->count.store(n, kRelaxed);
    // release: who finds it finds its capacity and mapped entries.
    directory_.store(grown, std::memory_order_release);
    directory = grown;
  }
  for (uint32_t i = n; i > at; --i) {
    copy(directory->entry[i].bound, directory->entry[i - 1].bound);
    copy(directory->entry[i].chunk, directory->entry[i - 1].chunk);
  }
  directory->entry[at].bound.store(bound, kRelaxed);
  directory->entry[at].chunk.store(chunk, std::memory_order_release);
  directory->count.store(n + 1, kRelaxed);
  return true;
}

void AreaIndex::remove_chunk(uint32_t at) {
  Directory* directory = directory_.load(kRelaxed);
  Chunk* chunk = directory->entry[at].chunk.load(kRelaxed);
  const uint32_t n = directory->count.load(kRelaxed) - 1;
  for (uint32_t i = at; i < n; ++i) {
    copy(directory->entry[i].bound, directory->entry[i + 1].bound);
    copy(directory->entry[i].chunk, directory->entry[i + 1].chunk);
  }
  directory->count.store(n, kRelaxed);
  chunk->next_free = free_chunks_;
  free_chunks_ = chunk;
}

bool AreaIndex::insert(uintptr_t begin, Area* area) {
  Directory* directory = directory_.load(kRelaxed);
  if (directory == nullptr || directory->count.load(kRelaxed) == 0) {
    Chunk* chunk = new_chunk();
    if (chunk == nullptr || !add_chunk(0, begin, chunk)) return false;
    put(*chunk, 0, begin, area);
    return true;
  }
  const uint32_t at = position(*directory, begin);
  Chunk* chunk = directory->entry[at].chunk.load(kRelaxed);
  uint32_t where = n_at_or_before(*chunk, begin);
  if (chunk->count.load(kRelaxed) == kPerChunk) {
    Chunk* upper = new_chunk();
    if (upper == nullptr) return false;
    // Who comes in ascending order, as most do, leaves full chunks behind.
    const bool appends = where == kPerChunk;
    const uint32_t split = appends ? kPerChunk : kPerChunk / 2;
    const uintptr_t bound = appends ? begin : chunk->begin[split].load(kRelaxed);
    if (!add_chunk(at + 1, bound, upper)) {
      upper->next_free = free_chunks_;
      free_chunks_ = upper;
      return false;
    }
    move_tail(*chunk, split, *upper);
    if (begin >= bound) {
      chunk = upper;
      where -= split;
    }
  }
  put(*chunk, where, begin, area);
  return true;
}

void AreaIndex::erase(uintptr_t begin) {
  Directory* directory = directory_.load(kRelaxed);
  const uint32_t at = position(*directory, begin);
  Chunk* chunk = directory->entry[at].chunk.load(kRelaxed);
  take_out(*chunk, n_at_or_before(*chunk, begin) - 1);
  const uint32_t left = chunk->count.load(kRelaxed);
  if (left == 0) {
    remove_chunk(at);
  } else if (at + 1 < directory->count.load(kRelaxed)) {
    Chunk* next = directory->entry[at + 1].chunk.load(kRelaxed);
    if (left + next->count.load(kRelaxed) > kPerChunk / 2) return;
    move_tail(*next, 0, *chunk);
    remove_chunk(at + 1);
  }
}

}  // namespace bosk::memory
