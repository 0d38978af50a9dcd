// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Doacross loops, ordered(n): iterations that wait for posted earlier ones.
//
// Chunks are numbered in iteration order; a ring of slots shows how far each chunk has come. A chunk
// may begin when its slot is free, that is when the chunk one ring before is complete. Every wait
// is therefore for an earlier iteration, and the earliest unfinished one waits for nothing: no
// deadlock, with memory for the ring only, whatever the loop's length.
#pragma once

#include "omp/loop.h"
#include "omp/team.h"
#include "omp/workshare.h"

namespace bosk::omp {

/// Progress of the chunks that use this slot, one after the other.
struct alignas(base::kCacheLine) DoacrossSlot {
  std::atomic<uint64_t>
      serving;  ///< number of the chunk that may use the slot; earlier ones are complete
  std::atomic<uint64_t>
      progress;  ///< of that chunk: what was posted last, see docs/design/worksharing.md
  std::atomic<uint32_t> epoch;  ///< changed for waiting members after a change of the others
  std::atomic<uint32_t> waiters;
};

/// Begins a doacross loop of counts[0] × … × counts[dimensions-1] iterations of which the outermost
/// dimension is shared out. `chunk` null as in loop_start_with_extras().
bool doacross_start(ImplicitTask* member, uint32_t dimensions, const uint64_t* counts,
                    LoopSchedule schedule, ConstructExtras extras, Chunk* chunk);

/// Iteration `vector` is complete as far as others depend on it.
void doacross_post(ImplicitTask* member, const uint64_t* vector);

/// Number of values in a vector of the member's loop; 0: waiting would be in vain (team of one).
inline uint32_t doacross_dimensions(const ImplicitTask* member) {
  const WorkShare* share = member->workshare;
  return share != nullptr && share->doacross ? share->dimensions : 0;
}

/// Waits until iteration `vector` was posted.
void doacross_wait(ImplicitTask* member, const uint64_t* vector);

// ---- called by the loop code
void doacross_begin_chunk(ImplicitTask* member, WorkShare& share, uint64_t k);
void doacross_end_chunk(ImplicitTask* member, WorkShare& share, uint64_t k);

}  // namespace bosk::omp
