// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keeps the sums, and the last decision that did something.
#include "policies/memory/decision_log.h"

#include <atomic>

namespace bosk::policies {
namespace {

/// As an array, because sums are all alike. Relaxed: figures.
enum Sum : uint32_t {
  kTaken,
  kFirstAction,
  kUnknown = kFirstAction + kMemoryActions,
  kAreas,
  kMarked,
  kStayed,
  kMoved,
  kAlready,
  kAbsent,
  kRefused,
  kNoMemory,
  kUnsplit,
  kSums
};
constinit std::atomic<uint64_t> sums[kSums]{};

/// Guarded by `last_in_use`. Who finds it in use goes without: nobody waits, also in a child of a fork that found it so.
constinit MemoryEvent last;
constinit std::atomic<bool> last_in_use{false};

void add(uint32_t what, uint64_t by) {
  if (by != 0) sums[what].fetch_add(by, std::memory_order_relaxed);
}
uint64_t sum(uint32_t what) { return sums[what].load(std::memory_order_relaxed); }

}  // namespace

void note_memory_event(const MemoryEvent& event) {
  add(kTaken, 1);
  add(kFirstAction + static_cast<uint32_t>(event.action), 1);
  add(kUnknown, event.unknown ? 1 : 0);
  add(kAreas, event.areas);
  add(kMarked, event.marked);
  add(kStayed, event.stayed);
  add(kMoved, event.pages.moved);
  add(kAlready, event.pages.already);
  add(kAbsent, event.pages.absent);
  add(kRefused, event.pages.refused);
  add(kNoMemory, event.pages.no_memory);
  add(kUnsplit, event.pages.unsplit);
  if (event.action == MemoryAction::kNothing) return;
  // acquire and release: one after the other has it.
  if (last_in_use.exchange(true, std::memory_order_acquire)) return;
  last = event;
  last_in_use.store(false, std::memory_order_release);
}

MemoryDecisions memory_decisions() {
  MemoryDecisions all;
  all.taken = sum(kTaken);
  for (uint32_t i = 0; i < kMemoryActions; ++i) all.by_action[i] = sum(kFirstAction + i);
  all.unknown = sum(kUnknown);
  all.areas = sum(kAreas);
  all.marked = sum(kMarked);
  all.stayed = sum(kStayed);
  all.pages = {sum(kMoved),   sum(kAlready),  sum(kAbsent),
               sum(kRefused), sum(kNoMemory), sum(kUnsplit)};
  if (last_in_use.exchange(true, std::memory_order_acquire)) return all;
  all.last = last;
  last_in_use.store(false, std::memory_order_release);
  return all;
}

}  // namespace bosk::policies
