// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One bit for each slot of a chunk; chunks are only ever added.
#include "omp/small_blocks.h"

#include <new>

#include "base/pages.h"
#include "base/syscalls.h"
#include "omp/placed_memory.h"

namespace bosk::omp {

struct SmallBlocks::Chunk {
  std::atomic<uint64_t> taken{1};    ///< bit per slot; the first is this description
  std::atomic<uint64_t> touched{1};  ///< slots that were ever given away: the others are zero
  Chunk* next = nullptr;             ///< constant once the chunk can be found
  size_t bytes = 0;
  uint32_t shift = 0;
  uint32_t home = 0;
  int process = 0;  ///< that pinned it; 0: it is not pinned

  char* slot(uint32_t i) { return reinterpret_cast<char*>(this) + (size_t{i} << shift); }
};

namespace {

constexpr uint32_t kSlots = 64;

/// So many full chunks are looked at before a new one is made: the cost of a block stays bounded, and
/// a chunk of 63 slots pays for the looking.
constexpr uint32_t kMostLooks = 64;

}  // namespace

SmallBlocks::Slot SmallBlocks::take(size_t bytes, const MemoryPlan& plan, uint32_t home,
                                    bool pinned) {
  static_assert(sizeof(Chunk) <= size_t{1} << kSmallestShift);
  uint32_t which = 0;
  while (bytes > size_t{1} << (kSmallestShift + which)) which++;
  Class& chunks = classes_[which];
  // A child of fork does not inherit locks on memory: what its parent pinned is not pinned there.
  const int process = pinned ? static_cast<int>(base::raw_syscall(SYS_getpid)) : 0;

  const auto take_from = [&](Chunk* chunk) -> Slot {
    if (chunk->home != home || chunk->process != process) return {};
    uint64_t taken = chunk->taken.load(std::memory_order_relaxed);
    while (~taken != 0) {
      const auto i = static_cast<uint32_t>(__builtin_ctzll(~taken));
      const uint64_t bit = uint64_t{1} << i;
      // acquire pairs with the release of whoever gave the slot back: its last accesses are over.
      if (!chunk->taken.compare_exchange_weak(taken, taken | bit, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
        continue;
      }
      // relaxed: ordered by `taken`, which every owner of this slot's bit goes through.
      const bool fresh = (chunk->touched.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
      chunks.latest.store(chunk, std::memory_order_release);
      return {chunk->slot(i), chunk, size_t{1} << chunk->shift, fresh};
    }
    return {};
  };

  // acquire, here and below: the chunk's description is seen, published by a release.
  Chunk* newest = chunks.newest.load(std::memory_order_acquire);
  Chunk* chunk = chunks.latest.load(std::memory_order_acquire);
  for (uint32_t looks = 0; newest != nullptr && looks < kMostLooks; looks++) {
    if (chunk == nullptr) chunk = newest;
    if (const Slot slot = take_from(chunk); slot.at != nullptr) return slot;
    chunk = chunk->next;
    // The next one to look goes on from here, if this one does not find any.
    if (looks + 1 == kMostLooks) chunks.latest.store(chunk, std::memory_order_release);
  }

  const uint32_t shift = kSmallestShift + which;
  const size_t page = page_size();
  const size_t all = ((size_t{kSlots} << shift) + page - 1) & ~(page - 1);
  void* memory = map_placed(all, 1, 0, plan_of_page(plan, home), pinned);
  if (memory == nullptr) return {};
  auto* made = new (memory) Chunk;
  made->bytes = all;
  made->shift = shift;
  made->home = home;
  made->process = process;
  made->taken.store(0b11, std::memory_order_relaxed);
  made->touched.store(0b11, std::memory_order_relaxed);
  made->next = newest;
  // Until it is in the list nobody may come across it: `next` changes here.
  while (!chunks.newest.compare_exchange_weak(made->next, made, std::memory_order_release,
                                              std::memory_order_relaxed)) {
  }
  chunks.latest.store(made, std::memory_order_release);
  return {made->slot(1), made, size_t{1} << shift, true};
}

void SmallBlocks::give_back(Chunk* chunk, const void* at) {
  const auto offset =
      static_cast<size_t>(static_cast<const char*>(at) - reinterpret_cast<char*>(chunk));
  const uint64_t bit = uint64_t{1} << (offset >> chunk->shift);
  // release: what the owner did to the slot comes before what the next one does.
  chunk->taken.fetch_and(~bit, std::memory_order_release);
  classes_[chunk->shift - kSmallestShift].latest.store(chunk, std::memory_order_release);
}

void SmallBlocks::release_all() {
  for (Class& chunks : classes_) {
    Chunk* chunk = chunks.newest.load(std::memory_order_acquire);
    while (chunk != nullptr) {
      Chunk* next = chunk->next;
      base::unmap_pages(chunk, chunk->bytes);
      chunk = next;
    }
    chunks.newest.store(nullptr, std::memory_order_relaxed);
    chunks.latest.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace bosk::omp
