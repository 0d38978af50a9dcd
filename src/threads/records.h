// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the library keeps of a thread and of a bubble that a program made.
//
// Who owns what:
//   guard     guards `bubble` (membership), `life`, whether it is queued and the counts of a bubble. Taken
//             with preemption off, a thread's before its bubble's, a bubble's before that of the bubble
//             around it, all of them before locks of queues and of the tree (sched/bubble_tree.h).
//   runner    whoever runs a thread, or handles it between its queue and its next one, owns the rest.
// Membership of bubbles in bubbles changes under the home's `nesting` lock as well, which comes first: so
// nobody can close a circle that another one has begun. But for bubbles that no bubble has ever been inserted into
// (`nests`), or that are empty: nothing that they are put into can be in them, and nobody who looks for a circle
// comes upon them without their guard. Without `nesting` an inner guard is held while the outer one is only tried.
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/bubble_tree.h"
#include "sched/entity_source.h"
#include "threads/table.h"

namespace bosk::threads {

struct BubbleRecord;

enum class Life : uint8_t {
  kFree,
  kAsleep,  ///< made, and nobody has woken it
  kAwake,
  kEnding,  ///< a thread: out of its bubble, and the runner is about to tell
  kEnded,   ///< a thread: not joined yet
};

struct ThreadRecord : sched::ExplicitThread {
  void* (*function)(void*) = nullptr;
  union {
    void* data = nullptr;
    void* result;  ///< from its end on
    ThreadRecord* next_free;
  };
  uint64_t since = 0;                                      ///< cycles: when it was switched to last
  std::atomic<int32_t> wanted_priority{sched::kNoEntity};  ///< to be taken by who has it
  std::atomic<uint32_t> ended{0};                          ///< futex: 1 when it has
  std::atomic<uint32_t> generation{1};
  uint32_t place = 0;
  uint32_t domain = 0;  ///< where it is put when it is ready
  base::SpinLock guard;
  std::atomic<Life> life{Life::kFree};
  bool claimed = false;  ///< somebody joins it, or it is detached; guard
  bool preemptible = true;
  bool light = false;
  bool detached = false;  ///< guard
  /// Number of the level, plus 1, in whose domain around its last PU it stays; 0: wherever it was let out.
  uint8_t affinity = 0;
  char name[16] = "";
};

struct BubbleRecord : sched::NestedBubble {
  BubbleRecord* next_free = nullptr;
  std::atomic<int32_t> wanted_priority{sched::kNoEntity};  ///< to be taken by who has it
  std::atomic<uint32_t> generation{1};
  uint32_t place = 0;
  base::SpinLock guard;
  std::atomic<Life> life{Life::kFree};
  uint8_t burst_level =
      0;  ///< number of the level, plus 1, whose domains burst it; 0: the policy decides
  bool nests = false;   ///< a bubble has been inserted into it; guard
  bool joined = false;  ///< somebody waits for `live`, or has; guard
  /// Threads in it that have not ended, and bubbles in it that have such. Futex: woken at 0. Written under the
  /// guard, so that nobody need do it in one step.
  std::atomic<uint32_t> live{0};
  // Its barrier; guard.
  uint32_t threads = 0;  ///< in it itself that have not ended
  uint32_t arrived = 0;
  std::atomic<uint32_t> epoch{0};  ///< futex
  char name[16] = "";
};

inline BubbleRecord* bubble_of(const sched::TreeEntity& entity) {
  return static_cast<BubbleRecord*>(entity.bubble);
}

using ThreadTable = Table<ThreadRecord, 1>;
using BubbleTable = Table<BubbleRecord, 2>;
inline constinit ThreadTable thread_table;
inline constinit BubbleTable bubble_table;

}  // namespace bosk::threads
