// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ordered map of areas.
#include "memory/area_index.h"

#include <bit>

#include "base/pages.h"
#include "memory/area.h"

namespace bosk::memory {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// Of words that may be pointers. release: who reads one finds what it points to mapped, and made.
template <typename T>
void copy(std::atomic<T>& to, const std::atomic<T>& from) {
  to.store(from.load(kRelaxed), std::memory_order_release);
}

// What an area is but for its limits and number, in a word: 4 bits of origin, 4 of placement, 8 of the logarithm of a huge page's
// size and 16 of the node, both by one more so that 0 is none, and 32 of the attachments.
constexpr int kPlacementAt = 4;
constexpr int kHugeAt = 8;
constexpr int kNodeAt = 16;
constexpr int kAttachmentsAt = 32;

uint64_t pack(const AreaInfo& info) {
  const auto huge = static_cast<uint64_t>(std::bit_width(info.huge_page));
  // kNone + 1 is 0.
  const uint64_t node = static_cast<uint16_t>(info.node + 1);
  return static_cast<uint64_t>(info.origin) |
         static_cast<uint64_t>(info.placement) << kPlacementAt | huge << kHugeAt | node << kNodeAt |
         uint64_t{info.attachments} << kAttachmentsAt;
}

uint32_t at_most(uint32_t n, uint32_t limit) { return n < limit ? n : limit; }

constexpr uint32_t kNoGuess = UINT32_MAX;

/// 2^64 by the mean distance of `count` ascending addresses from `first` to `last`; 0: no guess.
uint64_t scale_of(uintptr_t first, uintptr_t last, uint32_t count) {
  if (count < 2) return 0;
  const uintptr_t each = (last - first) / (count - 1);
  // Rounded up: an address of these is not to be guessed to be before it. One byte each is not worth a guess.
  return each > 1 ? UINT64_MAX / each + 1 : 0;
}

/// Which of n addresses is likely to be the last that is not above this one.
uint32_t guessed(uintptr_t address, uintptr_t first, uint64_t scale, uint32_t n) {
  if (scale == 0 || first > address || n < 2) return kNoGuess;
  const auto far =
      static_cast<uint64_t>(static_cast<unsigned __int128>(address - first) * scale >> 64);
  return far < n - 1 ? static_cast<uint32_t>(far) : n - 1;
}

}  // namespace

/// Of any words whatever.
inline void AreaIndex::unpack(const Words& words, AreaInfo* info) {
  const uint64_t others = words.others;
  const uint64_t huge = others >> kHugeAt & 255;
  *info = {
      .begin = words.begin,
      .end = words.end,
      .serial = words.serial,
      .origin = static_cast<Origin>(others & 15),
      .placement = static_cast<Placement>(others >> kPlacementAt & 15),
      .node = static_cast<NodeIndex>(others >> kNodeAt & 0xffff) - 1,
      .attachments = static_cast<uint32_t>(others >> kAttachmentsAt),
      .huge_page = huge != 0 ? uint32_t{1} << ((huge - 1) & 31) : 0,
  };
}

/// The entry whose chunk has the address's predecessor, or its successor only.
[[gnu::always_inline]] inline uint32_t AreaIndex::position(const Directory& directory,
                                                           uintptr_t address) {
  const auto bound = [&](uint32_t i) { return directory.bound[i].load(kRelaxed); };
  uint32_t left = at_most(directory.count.load(kRelaxed), directory.capacity);
  uint32_t low = 0;
  // As in a chunk, below.
  const uint32_t guess =
      guessed(address, directory.first.load(kRelaxed), directory.scale.load(kRelaxed), left);
  if (guess != kNoGuess) {
    if (bound(guess) > address) {
      left = guess;
    } else if (guess + 1 == left || bound(guess + 1) > address) {
      return guess;
    } else {
      low = guess + 1;
      left -= low;
    }
  }
  while (left > 1) {
    const uint32_t half = left / 2;
    low = bound(low + half) <= address ? low + half : low;
    left -= half;
  }
  return low;
}

/// How many areas of the chunk begin at the address or before.
[[gnu::always_inline]] inline uint32_t AreaIndex::n_at_or_before(const Entry& entry,
                                                                 const Chunk& chunk,
                                                                 uintptr_t address) {
  const auto begin = [&](uint32_t i) { return chunk.slot[i].begin.load(kRelaxed); };
  uint32_t low = 0;
  uint32_t left = at_most(entry.count.load(kRelaxed), kPerChunk);
  // Areas of about one size, as the parts of an array are, are found at the first guess. Whatever a writer makes of entry and
  // chunk meanwhile, the guess and the one behind it are inside.
  const uint32_t guess =
      guessed(address, entry.first.load(kRelaxed), entry.scale.load(kRelaxed), left);
  if (guess != kNoGuess) {
    if (begin(guess) > address) {
      left = guess;
    } else if (address < chunk.slot[guess].end.load(kRelaxed) || guess + 1 == left ||
               begin(guess + 1) > address) {
      return guess + 1;
    } else {
      low = guess + 2;
      left -= low;
    }
  }
  while (left != 0) {
    const uint32_t half = left / 2;
    if (begin(low + half) <= address) {
      low += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return low;
}

/// Of the last area that begins at the address or before.
[[gnu::always_inline]] inline AreaIndex::Place AreaIndex::find(uintptr_t address) const {
  const Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr || directory->count.load(kRelaxed) == 0) return {};
  const uint32_t at = position(*directory, address);
  // acquire, here and of the area: with the release in copy(), put() and add_chunk().
  const Entry* entry = &directory->entry(at);
  const Chunk* chunk = entry->chunk.load(std::memory_order_acquire);
  if (chunk == nullptr) return {};
  uint32_t n = n_at_or_before(*entry, *chunk, address);
  if (n == 0) {
    if (at == 0) return {};
    entry = &directory->entry(at - 1);
    chunk = entry->chunk.load(std::memory_order_acquire);
    if (chunk == nullptr) return {};
    n = at_most(entry->count.load(kRelaxed), kPerChunk);
    if (n == 0) return {};
  }
  return {chunk, n - 1};
}

Found AreaIndex::look_up(uintptr_t address, const std::atomic<uint32_t>& version, uint32_t seen,
                         AreaInfo* info) const {
  const Place place = find(address);
  Words words{};
  if (place.chunk != nullptr) words = read(place.chunk->slot[place.at]);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (version.load(kRelaxed) != seen) return Found::kChanged;
  if (address >= words.end) return Found::kNo;
  // Not before: what is written in parts and then copied waits for the first of it to be in the cache (store forwarding), and with
  // it whatever a processor could do meanwhile, the next look-up's misses above all.
  unpack(words, info);
  return Found::kYes;
}

Area* AreaIndex::at_or_before(uintptr_t address, AreaInfo* info) const {
  const Place place = find(address);
  if (place.chunk == nullptr) return nullptr;
  unpack(read(place.chunk->slot[place.at]), info);
  return place.chunk->area[place.at].load(std::memory_order_acquire);
}

inline AreaIndex::Words AreaIndex::read(const Slot& slot) {
  return {slot.begin.load(kRelaxed), slot.end.load(kRelaxed), slot.serial.load(kRelaxed),
          slot.others.load(kRelaxed)};
}

void AreaIndex::fill(Slot& slot, const AreaInfo& info) {
  slot.begin.store(info.begin, kRelaxed);
  slot.end.store(info.end, kRelaxed);
  slot.serial.store(info.serial, kRelaxed);
  slot.others.store(pack(info), kRelaxed);
}

void AreaIndex::copy_slot(Chunk& to, uint32_t at, const Chunk& from, uint32_t which) {
  Slot& there = to.slot[at];
  const Slot& here = from.slot[which];
  copy(there.begin, here.begin);
  copy(there.end, here.end);
  copy(there.serial, here.serial);
  copy(there.others, here.others);
  copy(to.area[at], from.area[which]);
}

void AreaIndex::set(const AreaInfo& info) {
  const Place place = find(info.begin);
  fill(const_cast<Slot&>(place.chunk->slot[place.at]), info);
}

Area* AreaIndex::behind(uintptr_t address) const {
  const Directory* directory = directory_.load(kRelaxed);
  if (directory == nullptr || directory->count.load(kRelaxed) == 0) return nullptr;
  const uint32_t at = position(*directory, address);
  const Entry& entry = directory->entry(at);
  const Chunk* chunk = entry.chunk.load(kRelaxed);
  const uint32_t n = n_at_or_before(entry, *chunk, address);
  if (n < entry.count.load(kRelaxed)) return chunk->area[n].load(kRelaxed);
  if (at + 1 == directory->count.load(kRelaxed)) return nullptr;
  return directory->entry(at + 1).chunk.load(kRelaxed)->area[0].load(kRelaxed);
}

/// Also what guesses go by. What was put or taken is in the chunk.
void AreaIndex::set_count(Entry& entry, uint32_t count) {
  entry.count.store(count, kRelaxed);
  if (count == 0) {
    entry.scale.store(0, kRelaxed);
    return;
  }
  const Chunk& chunk = *entry.chunk.load(kRelaxed);
  const uintptr_t first = chunk.slot[0].begin.load(kRelaxed);
  const uintptr_t last = chunk.slot[count - 1].begin.load(kRelaxed);
  entry.first.store(first, kRelaxed);
  entry.scale.store(scale_of(first, last, count), kRelaxed);
}

void AreaIndex::set_count(Directory& directory, uint32_t count) {
  directory.count.store(count, kRelaxed);
  const uintptr_t first = directory.bound[0].load(kRelaxed);
  const uintptr_t last = directory.bound[count != 0 ? count - 1 : 0].load(kRelaxed);
  directory.first.store(first, kRelaxed);
  directory.scale.store(scale_of(first, last, count), kRelaxed);
}

void AreaIndex::put(Entry& entry, uint32_t at, const AreaInfo& info, Area* area) {
  Chunk& chunk = *entry.chunk.load(kRelaxed);
  const uint32_t n = entry.count.load(kRelaxed);
  for (uint32_t i = n; i > at; --i) copy_slot(chunk, i, chunk, i - 1);
  fill(chunk.slot[at], info);
  chunk.area[at].store(area, std::memory_order_release);
  set_count(entry, n + 1);
}

void AreaIndex::take_out(Entry& entry, uint32_t at) {
  Chunk& chunk = *entry.chunk.load(kRelaxed);
  const uint32_t n = entry.count.load(kRelaxed) - 1;
  for (uint32_t i = at; i < n; ++i) copy_slot(chunk, i, chunk, i + 1);
  set_count(entry, n);
}

/// Appends what `from` has from `first` on to `to`.
void AreaIndex::move_tail(Entry& from, uint32_t first, Entry& to) {
  const Chunk& source = *from.chunk.load(kRelaxed);
  Chunk& target = *to.chunk.load(kRelaxed);
  const uint32_t n = from.count.load(kRelaxed);
  uint32_t into = to.count.load(kRelaxed);
  for (uint32_t i = first; i < n; ++i, ++into) copy_slot(target, into, source, i);
  set_count(to, into);
  set_count(from, first);
}

AreaIndex::Chunk* AreaIndex::new_chunk() {
  if (free_chunks_ == nullptr) {
    size_t bytes;
    auto* made = static_cast<Chunk*>(base::map_more(mapped_, sizeof(Chunk), &bytes));
    if (made == nullptr) return nullptr;
    mapped_ += bytes;
    for (size_t i = bytes / sizeof(Chunk); i-- > 0;) free_chunk(&made[i]);
  }
  Chunk* chunk = free_chunks_;
  free_chunks_ = chunk->next_free;
  return chunk;
}

void AreaIndex::free_chunk(Chunk* chunk) {
  chunk->next_free = free_chunks_;
  free_chunks_ = chunk;
}

void AreaIndex::move_entry(Directory& to, uint32_t at, const Directory& from, uint32_t which) {
  Entry& there = to.entry(at);
  const Entry& here = from.entry(which);
  copy(to.bound[at], from.bound[which]);
  copy(there.chunk, here.chunk);
  copy(there.first, here.first);
  copy(there.scale, here.scale);
  copy(there.count, here.count);
}

/// The chunk comes without areas.
bool AreaIndex::add_chunk(uint32_t at, uintptr_t bound, Chunk* chunk) {
  Directory* directory = directory_.load(kRelaxed);
  const uint32_t n = directory != nullptr ? directory->count.load(kRelaxed) : 0;
  if (directory == nullptr || n == directory->capacity) {
    const uint32_t capacity = directory != nullptr ? 2 * directory->capacity : kFirstDirectory;
    auto* grown = static_cast<Directory*>(base::map_pages(Directory::bytes(capacity)));
    if (grown == nullptr) return false;
    grown->capacity = capacity;
    for (uint32_t i = 0; i < n; ++i) move_entry(*grown, i, *directory, i);
    grown->count.store(n, kRelaxed);
    // release: who finds it finds its capacity and mapped entries.
    directory_.store(grown, std::memory_order_release);
    directory = grown;
  }
  for (uint32_t i = n; i > at; --i) move_entry(*directory, i, *directory, i - 1);
  directory->bound[at].store(bound, kRelaxed);
  Entry& entry = directory->entry(at);
  set_count(entry, 0);
  entry.chunk.store(chunk, std::memory_order_release);
  set_count(*directory, n + 1);
  return true;
}

void AreaIndex::remove_chunk(uint32_t at) {
  Directory* directory = directory_.load(kRelaxed);
  Chunk* chunk = directory->entry(at).chunk.load(kRelaxed);
  const uint32_t n = directory->count.load(kRelaxed) - 1;
  for (uint32_t i = at; i < n; ++i) move_entry(*directory, i, *directory, i + 1);
  set_count(*directory, n);
  free_chunk(chunk);
}

bool AreaIndex::insert(const AreaInfo& info, Area* area) {
  const uintptr_t begin = info.begin;
  Directory* directory = directory_.load(kRelaxed);
  if (directory == nullptr || directory->count.load(kRelaxed) == 0) {
    Chunk* chunk = new_chunk();
    if (chunk == nullptr) return false;
    if (!add_chunk(0, begin, chunk)) {
      free_chunk(chunk);
      return false;
    }
    put(directory_.load(kRelaxed)->entry(0), 0, info, area);
    return true;
  }
  uint32_t at = position(*directory, begin);
  Entry& entry = directory->entry(at);
  uint32_t where = n_at_or_before(entry, *entry.chunk.load(kRelaxed), begin);
  if (entry.count.load(kRelaxed) == kPerChunk) {
    Chunk* upper = new_chunk();
    if (upper == nullptr) return false;
    // Who comes in ascending order, as most do, leaves full chunks behind.
    const bool appends = where == kPerChunk;
    const uint32_t split = appends ? kPerChunk : kPerChunk / 2;
    const uintptr_t bound =
        appends ? begin : entry.chunk.load(kRelaxed)->slot[split].begin.load(kRelaxed);
    if (!add_chunk(at + 1, bound, upper)) {
      free_chunk(upper);
      return false;
    }
    directory = directory_.load(kRelaxed);  // it may have grown
    move_tail(directory->entry(at), split, directory->entry(at + 1));
    if (begin >= bound) {
      ++at;
      where -= split;
    }
  }
  put(directory->entry(at), where, info, area);
  return true;
}

void AreaIndex::erase(uintptr_t begin) {
  Directory* directory = directory_.load(kRelaxed);
  const uint32_t at = position(*directory, begin);
  Entry& entry = directory->entry(at);
  take_out(entry, n_at_or_before(entry, *entry.chunk.load(kRelaxed), begin) - 1);
  const uint32_t left = entry.count.load(kRelaxed);
  if (left == 0) {
    remove_chunk(at);
  } else if (at + 1 < directory->count.load(kRelaxed)) {
    Entry& next = directory->entry(at + 1);
    if (left + next.count.load(kRelaxed) > kPerChunk / 2) return;
    move_tail(next, 0, entry);
    remove_chunk(at + 1);
  }
}

}  // namespace bosk::memory
