// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waiting inside ordered and doacross loops: on one word, or for the region's cancellation too.
#pragma once

#include "omp/environment.h"
#include "omp/workshare_chain.h"
#include "sched/address_wait.h"

namespace bosk::omp {

/// Returns when done() is true, or the region was cancelled. `done` may become true only by a change
/// that signal_change() follows with the same `word`.
template <typename Done>
inline void await_change(Team* team, const std::atomic<uint32_t>& word, Done done) {
  const bool may_be_cancelled = process_icvs().cancellation;
  // Members that left a cancelled region change nothing any more, so with cancellation every wait is
  // on the one word of the team that GOMP_cancel changes as well.
  const std::atomic<uint32_t>& watched = may_be_cancelled ? team->workshares.events : word;
  for (;;) {
    // Read before done() is asked: a change after the question makes wait_on() return. seq_cst puts
    // it before the load in done() also where that is of another word.
    const uint32_t seen = watched.load(std::memory_order_seq_cst);
    if (done() || (may_be_cancelled && parallel_cancelled(team))) return;
    sched::wait_on(watched, seen);
  }
}

/// Wakes those whose done() may have become true. The caller has changed `word` before by a
/// sequentially consistent read-modify-write.
inline void signal_change(Team* team, const std::atomic<uint32_t>& word, uint32_t count) {
  if (BOSK_UNLIKELY(process_icvs().cancellation)) {
    team->workshares.events.fetch_add(1, std::memory_order_seq_cst);
    sched::wake_after_rmw(team->workshares.events, UINT32_MAX);
  } else {
    sched::wake_after_rmw(word, count);
  }
}

}  // namespace bosk::omp
