// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What marking and resolving share.
//
// Who owns what:
//   the gate, alone    the table, creation and end of regions, setting of marks
//   the gate, shared   looking regions up; they stay while it is held
//   a chunk's lock     the chunk's marks and counts, and where its data are; taken under the shared gate
// Every holder has all signals blocked (gate.h) and touches only its own stack and memory of this folder.
#pragma once

#include <signal.h>
#include <stdint.h>

#include <atomic>

#include "base/sleeping_lock.h"
#include "memory/next_touch/backend.h"
#include "memory/next_touch/gate.h"
#include "memory/next_touch/region.h"

namespace bosk::memory {

/// NextTouchStatistics, counted by many. relaxed: nothing depends on them.
struct Counters {
  std::atomic<uint64_t> marked, moved, local, stayed, no_room, absent, cancelled, lost, faults,
      late, chained, exchanged;
};

struct State {
  SharedLock gate;
  RegionTable table;
  Counters counters;
  /// Counts marks and ends of regions, with the gate held alone, before memory is closed to its users: try_again() in
  /// signals.cpp.
  std::atomic<uint32_t> changes;
  /// Threads in next_touch_mark_if(), and regions in the table: next_touch_anywhere().
  std::atomic<uint32_t> marking, regions;
  /// Regions whose marks need our handler of SIGBUS, SIGSEGV. Written with the gate held alone; relaxed: who
  /// looks without it acts on marks that he knows of.
  std::atomic<uint32_t> need_bus, need_segv;
};
extern State state;

inline void count(std::atomic<uint64_t>& counter, uint64_t by) {
  if (by != 0) counter.fetch_add(by, std::memory_order_relaxed);
}
void count(const Brought& brought);

/// The region is in the table now, or (-1) is taken out of it.
inline void count_region(const Region& region, int by) {
  state.regions.fetch_add(static_cast<uint32_t>(by), std::memory_order_relaxed);
  std::atomic<uint32_t>& need = region.backend->signal == SIGBUS ? state.need_bus : state.need_segv;
  if (region.backend->signal != 0)
    need.fetch_add(static_cast<uint32_t>(by), std::memory_order_relaxed);
}

base::SleepingLock& lock_of_chunk(uintptr_t at);
void reset_chunk_locks();  // in a forked child

/// The address of a page that cannot be read; 0: no memory.
uintptr_t unreadable_page();
/// A page that may be read and written, and in which nothing has ever been. 0: no memory.
uintptr_t untouched_page();
/// Both are there from now on.
inline bool have_pages_of_ours() { return unreadable_page() != 0 && untouched_page() != 0; }

}  // namespace bosk::memory
