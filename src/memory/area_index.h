// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From addresses to areas: an ordered map that any number of readers search while one writer changes it.
//
// Areas in the order of their first bytes lie in chunks of up to 102, with all that look-ups say of them, and a directory has
// each chunk's lower bound and what is needed to guess where in the chunk an address is, and in which chunk. What a look-up takes
// is what it misses: with 10^5 areas the bounds take 8 KB, the guesses 32 KB and the chunks 4 MB, and where areas are of about one
// size it touches one line of cache of each. Inserting moves at most a chunk (4 KB), and a directory entry for every 51 areas or so.
//
// Writers hold a lock (the table's). Readers take none: they search inside of a sequence counter's read
// section (area_table.h) and throw away what they found if it changed meanwhile. What they read on the
// way may then be half of two states, so nothing may be out of bounds or unmapped in any mixture:
//   - every word is an atomic (relaxed), counts that are read never exceed what each chunk or directory has room for,
//     null pointers are looked for;
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
struct AreaInfo;

enum class Found : uint8_t { kNo, kYes, kChanged };

class AreaIndex {
 public:
  /// What is known of the area that has `address`. O(log areas). For those with the lock, and for those who have seen of
  /// `version`, which writers change, that nobody writes: kChanged if it is no longer as `seen`, and nothing is known.
  Found look_up(uintptr_t address, const std::atomic<uint32_t>& version, uint32_t seen,
                AreaInfo* info) const;
  /// The last area that begins at `address` or before, and what is known of it; null: there is none. O(log areas). Inside of a
  /// read section, or with the lock.
  Area* at_or_before(uintptr_t address, AreaInfo* info) const;
  /// The first area that begins behind `address`; null: there is none. For writers.
  Area* behind(uintptr_t address) const;

  /// For writers. There is none that begins there yet. False: no memory, and nothing has changed.
  bool insert(const AreaInfo& info, Area* area);
  /// For writers. There is one that begins there: this is known of it now. O(log areas).
  void set(const AreaInfo& info);
  /// For writers. There is one that begins there.
  void erase(uintptr_t begin);

 private:
  static constexpr uint32_t kPerChunk = 102;
  static constexpr uint32_t kFirstDirectory = 255;

  struct Slot {
    std::atomic<uintptr_t> begin;
    std::atomic<uintptr_t> end;
    std::atomic<uint64_t> serial;
    std::atomic<uint64_t> others;  ///< the rest of AreaInfo
  };
  /// What a slot says.
  struct Words {
    uintptr_t begin, end;
    uint64_t serial, others;
  };
  /// Most look-ups touch one line of it, for they do not want the area itself.
  struct alignas(4096) Chunk {
    Slot slot[kPerChunk];
    std::atomic<Area*> area[kPerChunk];
    Chunk* next_free;
  };
  struct Place {
    const Chunk* chunk;  ///< null: none
    uint32_t at;
  };
  /// A chunk, and what is known of it without looking into it.
  struct Entry {
    std::atomic<Chunk*> chunk;
    std::atomic<uintptr_t> first;  ///< where its first area begins
    std::atomic<uint64_t>
        scale;  ///< 2^64 by the mean distance of its areas' first bytes; 0: no guess
    std::atomic<uint32_t> count;
  };
  /// Entries follow the bounds.
  struct Directory {
    uint32_t capacity;
    std::atomic<uint32_t> count;
    std::atomic<uintptr_t> first;  ///< the first bound
    std::atomic<uint64_t> scale;   ///< as an entry's, of the bounds
    /// No area in the entry's chunk begins before; the first one's is not looked at.
    std::atomic<uintptr_t> bound[];

    static size_t bytes(uint32_t capacity) {
      return sizeof(Directory) + capacity * (sizeof(std::atomic<uintptr_t>) + sizeof(Entry));
    }
    Entry& entry(uint32_t i) { return reinterpret_cast<Entry*>(bound + capacity)[i]; }
    const Entry& entry(uint32_t i) const { return const_cast<Directory*>(this)->entry(i); }
  };

  static uint32_t position(const Directory& directory, uintptr_t address);
  static uint32_t n_at_or_before(const Entry& entry, const Chunk& chunk, uintptr_t address);
  static void put(Entry& entry, uint32_t at, const AreaInfo& info, Area* area);
  static void fill(Slot& slot, const AreaInfo& info);
  static Words read(const Slot& slot);
  static void unpack(const Words& words, AreaInfo* info);
  static void copy_slot(Chunk& to, uint32_t at, const Chunk& from, uint32_t which);
  Place find(uintptr_t address) const;
  static void take_out(Entry& entry, uint32_t at);
  static void move_tail(Entry& from, uint32_t first, Entry& to);
  static void set_count(Entry& entry, uint32_t count);
  static void set_count(Directory& directory, uint32_t count);
  static void move_entry(Directory& to, uint32_t at, const Directory& from, uint32_t which);
  Chunk* new_chunk();
  void free_chunk(Chunk* chunk);
  bool add_chunk(uint32_t at, uintptr_t bound, Chunk* chunk);
  void remove_chunk(uint32_t at);

  std::atomic<Directory*> directory_{nullptr};
  Chunk* free_chunks_ = nullptr;
  size_t mapped_ = 0;  ///< for chunks
};

}  // namespace bosk::memory
