// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bit runs, and the table of regions. malloc is not called: mark and free of a program's own allocator
// may lead here.
#include "memory/next_touch/region.h"

#include <string.h>

namespace bosk::memory {
namespace {

/// Bits [first, end) of a word.
uint64_t mask_of(uint32_t first, uint32_t end) {
  const uint64_t below_end = end >= 64 ? ~uint64_t{0} : (uint64_t{1} << end) - 1;
  return below_end & ~((uint64_t{1} << first) - 1);
}

// Small records come from blocks of them: most areas are small, and a mapping for each would cost more
// than the mark.
constexpr size_t kSmallRecord = 512;
constexpr size_t kBlock = 64 * 1024;
static_assert(sizeof(Region) + 2 * sizeof(Chunk) <= kSmallRecord);

constinit Region* free_records = nullptr;

Region* small_record() {
  if (free_records == nullptr) {
    char* block = static_cast<char*>(base::map_pages(kBlock));
    if (block == nullptr) return nullptr;
    for (size_t at = 0; at + kSmallRecord <= kBlock; at += kSmallRecord) {
      auto* record = reinterpret_cast<Region*>(block + at);
      record->next = free_records;
      free_records = record;
    }
  }
  Region* record = free_records;
  free_records = record->next;
  memset(static_cast<void*>(record), 0, kSmallRecord);
  record->bytes = kSmallRecord;
  return record;
}

}  // namespace

void Chunk::set(uint32_t first, uint32_t count, bool value) {
  const uint32_t end = first + count;
  for (uint32_t at = first; at < end; at = (at / 64 + 1) * 64) {
    const uint32_t word = at / 64;
    const uint64_t mask = mask_of(at % 64, end >= (word + 1) * 64 ? 64 : end % 64);
    marked[word] = value ? marked[word] | mask : marked[word] & ~mask;
  }
}

uint32_t Chunk::run_end(uint32_t first, uint32_t limit) const {
  const bool value = is_marked(first);
  uint32_t at = first;
  while (at < limit) {
    const uint64_t word = value ? ~marked[at / 64] : marked[at / 64];
    const uint64_t other = word & mask_of(at % 64, 64);
    if (other != 0) {
      const uint32_t end = at / 64 * 64 + static_cast<uint32_t>(__builtin_ctzll(other));
      return end < limit ? end : limit;
    }
    at = (at / 64 + 1) * 64;
  }
  return limit;
}

uint32_t Chunk::count(uint32_t first, uint32_t end) const {
  uint32_t n = 0;
  for (uint32_t at = first; at < end; at = (at / 64 + 1) * 64)
    n += static_cast<uint32_t>(__builtin_popcountll(
        marked[at / 64] & mask_of(at % 64, end >= (at / 64 + 1) * 64 ? 64 : end % 64)));
  return n;
}

uint32_t RegionTable::position(uintptr_t at) const {
  uint32_t low = 0, high = size_;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (regions_[middle]->end <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Region* RegionTable::first_after(uintptr_t at) const {
  const uint32_t i = position(at);
  return i < size_ ? regions_[i] : nullptr;
}

Region* RegionTable::find(uintptr_t at) const {
  Region* region = first_after(at);
  return region != nullptr && region->begin <= at ? region : nullptr;
}

bool RegionTable::insert(Region* region) {
  if (size_ == room_) {
    const uint32_t room = room_ == 0 ? 512 : room_ * 2;
    auto* grown = static_cast<Region**>(base::map_pages(size_t{room} * sizeof(Region*)));
    if (grown == nullptr) return false;
    if (size_ != 0) memcpy(static_cast<void*>(grown), regions_, size_t{size_} * sizeof(Region*));
    base::unmap_pages(static_cast<void*>(regions_), size_t{room_} * sizeof(Region*));
    regions_ = grown;
    room_ = room;
  }
  const uint32_t i = position(region->begin);
  memmove(static_cast<void*>(regions_ + i + 1), regions_ + i,
          (size_t{size_} - i) * sizeof(Region*));
  regions_[i] = region;
  ++size_;
  return true;
}

void RegionTable::remove(const Region* region) {
  const uint32_t i = position(region->begin);
  memmove(static_cast<void*>(regions_ + i), regions_ + i + 1,
          (size_t{size_} - i - 1) * sizeof(Region*));
  --size_;
}

Region* new_region(uintptr_t begin, uintptr_t end) {
  const uintptr_t base = begin & ~(kChunkBytes - 1);
  const size_t n_chunks = (end - base + kChunkBytes - 1) / kChunkBytes;
  const size_t bytes = sizeof(Region) + n_chunks * sizeof(Chunk);
  Region* region;
  if (bytes <= kSmallRecord) {
    region = small_record();
    if (region == nullptr) return nullptr;
  } else {
    const size_t whole = (bytes + base::kPage - 1) & ~(base::kPage - 1);
    region = static_cast<Region*>(base::map_pages(whole));
    if (region == nullptr) return nullptr;
    region->bytes = whole;
  }
  region->begin = begin;
  region->end = end;
  region->n_chunks = static_cast<uint32_t>(n_chunks);
  return region;
}

void free_region(Region* region) {
  if (region->bytes == kSmallRecord) {
    region->next = free_records;
    free_records = region;
  } else {
    base::unmap_pages(region, region->bytes);
  }
}

}  // namespace bosk::memory
