// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records of one kind, and the handles that programs know them by.
//
// A handle is a number in the form of a pointer: tag, place in the table, and how often the place was
// used. So a handle that is used after its object has ended names nothing, and is told so instead of
// crashing. Records are never given back to the system: whoever has one in hand a moment too late reads
// a record.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <new>

#include "base/cpu.h"
#include "base/pages.h"
#include "base/spinlock.h"

namespace bosk::threads {

/// Record has `std::atomic<uint32_t> generation{1}`, `uint32_t place` and `Record* next_free`.
template <typename Record, uintptr_t kTag>
class Table {
 public:
  /// A new one, or null: out of memory. `near`: any number; the same for calls that share a cache.
  /// Preemption is off. O(1).
  Record* take(uint32_t near) {
    Shard& shard = shards_[near % kShards];
    base::SpinGuard guard(shard.lock);
    if (shard.free == nullptr && !refill(shard)) return nullptr;
    Record* record = shard.free;
    shard.free = record->next_free;
    return record;
  }
  /// Its handles name nothing from here on. Preemption is off. O(1).
  void give(Record* record, uint32_t near) {
    const uint32_t next = (record->generation.load(std::memory_order_relaxed) + 1) & kGenerations;
    // release: who finds the new number finds what was written before.
    record->generation.store(next != 0 ? next : 1, std::memory_order_release);
    Shard& shard = shards_[near % kShards];
    base::SpinGuard guard(shard.lock);
    record->next_free = shard.free;
    shard.free = record;
  }

  static uintptr_t handle_of(const Record* record) {
    return uintptr_t{record->generation.load(std::memory_order_relaxed)} << kGenerationShift |
           uintptr_t{record->place} << kPlaceShift | kTag;
  }
  /// Null: it names nothing, or something else. O(1).
  Record* find(uintptr_t handle) const {
    if ((handle & kTags) != kTag) return nullptr;
    const auto place = static_cast<uint32_t>(handle >> kPlaceShift);
    if (place >= used_.load(std::memory_order_acquire)) return nullptr;
    // relaxed: written only in a forked child, while there is one thread.
    if (place < first_.load(std::memory_order_relaxed)) return nullptr;
    Record* record = at(place);
    return record->generation.load(std::memory_order_acquire) == handle >> kGenerationShift
               ? record
               : nullptr;
  }

  /// Handles of all records that are or were in use. O(records).
  template <typename Each>
  void for_each(Each&& each) const {
    const uint32_t used = used_.load(std::memory_order_acquire);
    for (uint32_t place = first_.load(std::memory_order_relaxed); place < used; ++place)
      each(handle_of(at(place)));
  }

  /// In a forked child: locks that others had are free, and no handle of the parent's names anything. Its records are
  /// left as they are, for one of its threads may have been writing them; the child takes others.
  void forget_after_fork() {
    first_.store(used_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    new (&growing_) base::SpinLock;
    for (Shard& shard : shards_) {
      new (&shard.lock) base::SpinLock;
      shard.free = nullptr;
    }
  }

 private:
  // 2 bits tag, 32 bits place, 30 bits generation.
  static constexpr uintptr_t kTags = 3;
  static constexpr unsigned kPlaceShift = 2;
  static constexpr unsigned kGenerationShift = 34;
  static constexpr uint32_t kGenerations = (1u << 30) - 1;
  static constexpr uint32_t kShards = 16;
  static constexpr uint32_t kBatch = 64;  ///< records that a shard gets at a time
  static constexpr uint32_t kChunk = 8192;
  static constexpr uint32_t kChunks = 8192;

  struct alignas(base::kCacheLine) Shard {
    base::SpinLock lock;
    Record* free = nullptr;
  };

  Record* at(uint32_t place) const {
    return chunks_[place / kChunk].load(std::memory_order_acquire) + place % kChunk;
  }

  bool refill(Shard& shard) {
    base::SpinGuard guard(growing_);
    const uint32_t used = used_.load(std::memory_order_relaxed);
    if (used / kChunk == kChunks) return false;
    auto& chunk = chunks_[used / kChunk];
    if (used % kChunk == 0) {
      void* memory = base::map_pages(sizeof(Record) * kChunk);
      if (memory == nullptr) return false;
      chunk.store(static_cast<Record*>(memory), std::memory_order_release);
    }
    Record* first = chunk.load(std::memory_order_relaxed) + used % kChunk;
    for (uint32_t i = kBatch; i-- > 0;) {
      Record* record = new (first + i) Record;
      record->place = used + i;
      record->next_free = shard.free;
      shard.free = record;
    }
    // release: who finds one by its place finds it made.
    used_.store(used + kBatch, std::memory_order_release);
    return true;
  }

  std::atomic<uint32_t> used_{0};
  std::atomic<uint32_t> first_{
      0};                   ///< those before it were the parent's, when this process was forked
  base::SpinLock growing_;  ///< taken after a shard's
  std::atomic<Record*> chunks_[kChunks] = {};
  Shard shards_[kShards] = {};
};

}  // namespace bosk::threads
