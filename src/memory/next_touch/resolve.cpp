// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A touch takes the gate shared and one chunk's lock; several threads that walk over one area resolve its
// chunks side by side, and the second one at a page finds it done.
#include "memory/next_touch/resolve.h"

#include "memory/next_touch/state.h"
#include "memory/next_touch/window.h"

namespace bosk::memory {
namespace {

/// So many pages wait for their old copies to be given back: one system call for them.
constexpr uint16_t kStaleAtMost = 32;

struct ChunkSpan {
  uintptr_t base;
  uint32_t low;  ///< pages of the chunk that belong to the region
  uint32_t high;
};

ChunkSpan span_of(const Region& region, uintptr_t at) {
  ChunkSpan span;
  span.base = at & ~(kChunkBytes - 1);
  span.low = region.begin > span.base ? page_in_chunk(region.begin) : 0;
  span.high = region.end < span.base + kChunkBytes ? page_in_chunk(region.end) : kChunkPages;
  return span;
}

uintptr_t address(const ChunkSpan& span, uint32_t page) { return span.base + page * base::kPage; }

/// Marks of pages that are accessible again.
void unmark(Region& region, Chunk& chunk, uint32_t first, uint32_t count) {
  chunk.set(first, count, false);
  // release: who reads 0 and then ends the region comes after this (by way of the gate, too).
  region.n_marked.fetch_sub(count, std::memory_order_release);
}

/// Gives back the old copies of all pages that are not marked.
void drop_stale(Region& region, Chunk& chunk, const ChunkSpan& span) {
  for (uint32_t page = span.low; page < span.high;) {
    const uint32_t end = chunk.run_end(page, span.high);
    if (!chunk.is_marked(page))
      region.backend->drop_copies(region, address(span, page), address(span, end));
    page = end;
  }
  chunk.stale = 0;
}

void bring_window(Region& region, Chunk& chunk, const ChunkSpan& span, uint32_t page,
                  uint32_t target) {
  Chunk* const first = region.chunks;
  Chunk* const last = first + region.n_chunks - 1;
  const Window window =
      choose_window(region, chunk, &chunk != first ? &chunk - 1 : nullptr,
                    &chunk != last ? &chunk + 1 : nullptr, page, span.low, span.high);
  Brought brought;
  for (uint32_t at = window.first; at < window.end;) {
    const uint32_t end = chunk.run_end(at, window.end);
    if (chunk.is_marked(at)) {
      const uintptr_t stop = address(span, end);
      const uintptr_t came =
          region.backend->bring(region, address(span, at), stop, target, &brought);
      const auto count = static_cast<uint32_t>((came - address(span, at)) / base::kPage);
      if (count != 0) unmark(region, chunk, at, count);
      if (came < stop) break;
    }
    at = end;
  }
  count(brought);
  chunk.stale = static_cast<uint16_t>(chunk.stale + brought.copied);
  chunk.low.store(static_cast<uint16_t>(window.first), std::memory_order_relaxed);
  chunk.high.store(static_cast<uint16_t>(window.end), std::memory_order_relaxed);
  chunk.window.store(static_cast<uint16_t>(window.size), std::memory_order_relaxed);
  if (region.backend->drop_copies != nullptr && chunk.stale >= kStaleAtMost)
    drop_stale(region, chunk, span);
}

/// The last mark of the region that held `at` is gone; ends it unless it was marked again meanwhile.
void end_region_at(uintptr_t at) {
  state.gate.lock();
  Region* region = state.table.find(at);
  if (region != nullptr && region->n_marked.load(std::memory_order_relaxed) == 0)
    end_region(region);
  state.gate.unlock();
}

/// The marks in a part of one chunk. False: no memory for some.
bool put_back_in_chunk(Region& region, uintptr_t begin, uintptr_t end) {
  const ChunkSpan span = span_of(region, begin);
  Chunk& chunk = region.chunk_of(begin);
  const uint32_t stop = end >= span.base + kChunkBytes ? kChunkPages : page_in_chunk(end);
  Brought brought;
  uint32_t cancelled = 0;
  bool all = true;
  for (uint32_t at = page_in_chunk(begin); at < stop;) {
    const uint32_t run = chunk.run_end(at, stop);
    if (chunk.is_marked(at)) {
      const uintptr_t from = address(span, at);
      const uintptr_t came = region.backend->put_back(region, from, address(span, run), &brought);
      const auto count = static_cast<uint32_t>((came - from) / base::kPage);
      if (count != 0) unmark(region, chunk, at, count);
      cancelled += count;
      all = all && came == address(span, run);
    }
    at = run;
  }
  chunk.stale = static_cast<uint16_t>(chunk.stale + brought.copied);
  count(state.counters.lost, brought.lost);
  count(state.counters.cancelled, cancelled - brought.lost);
  return all;
}

}  // namespace

bool resolve_touch(uintptr_t at, int signal, uint32_t target, uint32_t* changes) {
  state.gate.lock_shared();
  // relaxed: it changes only where the gate is held alone.
  *changes = state.changes.load(std::memory_order_relaxed);
  Region* region = state.table.find(at);
  if (region == nullptr || region->backend->signal != signal) {
    state.gate.unlock_shared();
    return false;
  }
  count(state.counters.faults, 1);
  bool again = true;
  base::SleepingLock& lock = lock_of_chunk(at);
  lock.lock();
  Chunk& chunk = region->chunk_of(at);
  const uint32_t page = page_in_chunk(at);
  const bool marked = chunk.is_marked(page);
  if (marked) {
    bring_window(*region, chunk, span_of(*region, at), page, target);
  } else {
    again = region->backend->touch_unmarked(*region, at & ~(base::kPage - 1));
  }
  lock.unlock();
  // relaxed: looked at again under the gate.
  const bool last = marked && region->n_marked.load(std::memory_order_relaxed) == 0;
  state.gate.unlock_shared();
  if (!marked && again) count(state.counters.late, 1);
  if (last) end_region_at(at);
  return again;
}

void cancel_marks(uintptr_t begin, uintptr_t end) {
  constexpr int kMostTries = 10'000;
  int tries = 0;
  for (uintptr_t at = begin; at < end;) {
    state.gate.lock_shared();
    Region* region = state.table.first_after(at);
    if (region == nullptr || region->begin >= end) {
      state.gate.unlock_shared();
      return;
    }
    if (region->begin > at) at = region->begin;
    uintptr_t stop = (at & ~(kChunkBytes - 1)) + kChunkBytes;
    if (region->end < stop) stop = region->end;
    if (end < stop) stop = end;
    base::SleepingLock& lock = lock_of_chunk(at);
    lock.lock();
    const bool all = put_back_in_chunk(*region, at, stop);
    lock.unlock();
    const bool last = region->n_marked.load(std::memory_order_relaxed) == 0;
    state.gate.unlock_shared();
    if (last) end_region_at(at);
    if (!all && ++tries < kMostTries) {
      base::raw_syscall(SYS_sched_yield);  // somebody gives memory back, or dies
      continue;
    }
    at = stop;
  }
}

bool put_back_all(Region& region, uintptr_t begin, uintptr_t end) {
  bool all = true;
  for (uintptr_t at = begin; at < end;) {
    uintptr_t stop = (at & ~(kChunkBytes - 1)) + kChunkBytes;
    if (end < stop) stop = end;
    all = put_back_in_chunk(region, at, stop) && all;
    at = stop;
  }
  return all;
}

void end_region(Region* region) {
  region->backend->disarm(*region);
  state.table.remove(region);
  count_region(*region, -1);
  free_region(region);
  state.changes.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace bosk::memory
