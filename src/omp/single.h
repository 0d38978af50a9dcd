// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single constructs: one member executes.
#pragma once

#include "omp/team.h"
#include "omp/workshare_chain.h"

namespace bosk::omp {

/// Meets the member's next `single`; true: it executes the block. The team counts the singles given
/// away; a member's n-th single is free as long as that count is n. A member that comes late finds it
/// higher, with one load. It is never lower: whoever passed single n - 1 saw it taken.
inline bool single_start(ImplicitTask* member) {
  Team* team = member->team;
  if (team->size == 1) return true;
  const uint64_t mine = member->singles++;
  // relaxed throughout: winning orders nothing by itself. What the block reads was ordered before by
  // the fork or a barrier, and who needs its results waits for one.
  uint64_t taken = team->single_taken.load(std::memory_order_relaxed);
  if (taken != mine) return false;
  if (!team->single_taken.compare_exchange_strong(taken, mine + 1, std::memory_order_relaxed)) {
    return false;
  }
  mark_used(team);
  return true;
}

/// single with copyprivate. Null: the caller executes, and publishes with single_copy_end(); else
/// what the executing member published. The compiler puts a barrier after the copies are made, so
/// the pointer stays valid until then.
inline void* single_copy_start(ImplicitTask* member) {
  if (single_start(member)) return nullptr;
  barrier();
  return member->team->copyprivate;
}
inline void single_copy_end(ImplicitTask* member, void* data) {
  // Ordered by the barrier; the previous value was read before the compiler's barrier.
  member->team->copyprivate = data;
  barrier();
}

}  // namespace bosk::omp
