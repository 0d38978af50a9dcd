// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cache accesses and misses of threads that a program has made, for who asks for them (BOSK_COUNTERS=on): counted from switch to
// switch, by the counters of the worker.
//
// The figures are kept beside the records of threads, by their places, so that those of programs that do not ask stay as small as they are.
// Who owns what: all of a thread's but the sums belongs to its runner; sums are written by it alone, and read by anybody (relaxed: figures).
#pragma once

#include "sched/worker.h"
#include "threads/records.h"

namespace bosk::threads {

/// The program asks, and there is something to count with; if there is not, one line says so. For Home::counts_caches.
bool start_counting_caches();

// Where Home::counts_caches is set; preemption is off.

/// The thread goes on, on the worker.
void begin_counting(const ThreadRecord& thread, const sched::Worker* w);
/// It stops; or somebody wants to know up to now. Whoever runs it, on the worker where it has begun; null: it is on none.
void count_caches(const ThreadRecord& thread, const sched::Worker* w);

/// Of one or more threads. Known: of some time of one of them at least.
struct CacheSums {
  uint64_t accesses = 0;
  uint64_t misses = 0;
  bool known = false;
};
/// The thread's record does not end meanwhile.
void add_caches(const ThreadRecord& thread, CacheSums* sums);

}  // namespace bosk::threads
