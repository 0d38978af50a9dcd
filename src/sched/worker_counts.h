// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a worker counts for the report.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// What a report adds up. Written by the worker's own kernel thread only, read at exit.
struct WorkerCounts {
  uint64_t ghosts_run = 0;     ///< ghosts started on this worker
  uint64_t ghosts_stolen = 0;  ///< of these, of teams that another worker opened
  uint64_t teams_taken = 0;  ///< from another node: of a team all that had not begun, or most of it
  uint64_t teams_resettled = 0;  ///< of these, that are at home there since, with their memory
  uint64_t switches = 0;
  uint64_t blocked = 0;         ///< times a ghost or member was switched out
  uint64_t threads_stolen = 0;  ///< ready threads taken from another worker
  uint64_t preemptions = 0;
  uint64_t yields = 0;  ///< turns that the program has given away, by sched_yield()
  uint64_t promotions = 0;
  uint64_t parks = 0;
  uint64_t parked_ns = 0;
  uint64_t joint_turns = 0;     ///< begun here
  uint64_t gangs = 0;           ///< regions opened here whose team was one
  uint64_t outside_pauses = 0;  ///< of its native thread, which polled outside of regions
  uint64_t homecomings = 0;     ///< times its kernel thread went back to its home
};

/// By the worker's role alone; the report reads it at any time. relaxed: a figure.
inline void add_seen(uint64_t* counter, uint64_t more = 1) {
  const std::atomic_ref seen(*counter);
  seen.store(seen.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace bosk::sched
