// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From addresses to areas: an ordered map that any number of readers search while one writer changes it.
//
// Areas in the order of their first bytes lie in chunks of up to 126, and a directory has each chunk's
// lower bound: two binary searches, over some 10 KB and 1 KB with 10^5 areas. Inserting moves at most a
// chunk, and a directory entry for every 63 areas or so.
//
// Writers hold a lock (the table's). Readers take none: they search inside of a sequence counter's read
// section (area_table.h) and throw away what they found if it changed meanwhile. What they read on the
// way may then be half of two states, so nothing may be out of bounds or unmapped in any mixture:
//   - every word is an atomic (relaxed), counts never exceed what their own block has room for, null
//     pointers are looked for;
//   - pointers are stored with release and read with acquire, so that what they point to is mapped and made,
//     however old or new they are;
//   - chunks and directories are never given back. An outgrown directory stays (all of them together are no
//     larger than the one in use), empty chunks are used again.
// A directory's capacity is no atomic: it is written before the directory is published (release) and read
// after it was found (acquire).
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::memory {

struct Area;

class AreaIndex {
 public:
  /// The last area that begins at `address` or before; null: there is none. O(log areas).
  Area* at_or_before(uintptr_t address) const;
  /// The first area that begins behind `address`; null: there is none. For writers.
  Area* behind(uintptr_t address) const;

  /// For writers. There is none that begins there yet. False: no memory, and nothing has changed.
  bool insert(uintptr_t begin, Area* area);
  /// For writers. There is one that begins there.
  void erase(uintptr_t begin);

 private:
  static constexpr uint32_t kPerChunk = 126;
  static constexpr uint32_t kFirstDirectory = 255;

  struct Chunk {
    std::atomic<uint32_t> count;
    Chunk* next_free;
    std::atomic<uintptr_t> begin[kPerChunk];
    std::atomic<Area*> area[kPerChunk];
  };
  struct Entry {
    std::atomic<uintptr_t>
        bound;  ///< no area in it begins before; the first one's is not looked at
    std::atomic<Chunk*> chunk;
  };
  struct Directory {
    uint32_t capacity;
    std::atomic<uint32_t> count;
    Entry entry[];
  };

  static uint32_t position(const Directory& directory, uintptr_t address);
  static uint32_t n_at_or_before(const Chunk& chunk, uintptr_t address);
  static void put(Chunk& chunk, uint32_t at, uintptr_t begin, Area* area);
  static void take_out(Chunk& chunk, uint32_t at);
  static void move_tail(Chunk& from, uint32_t first, Chunk& to);
  Chunk* new_chunk();
  bool add_chunk(uint32_t at, uintptr_t bound, Chunk* chunk);
  void remove_chunk(uint32_t at);

  std::atomic<Directory*> directory_{nullptr};
  Chunk* free_chunks_ = nullptr;
};

}  // namespace bosk::memory
