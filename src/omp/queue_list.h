// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queues of a team as thieves see them, and where their owners are on the machine.
#pragma once

#include <stdint.h>

#include <atomic>

#include "topology/machine.h"

namespace bosk::omp {

struct MemberQueue;

/// Grown by copying; outgrown ones stay, thieves may be reading them.
struct QueueList {
  struct Entry {
    std::atomic<MemberQueue*> queue;
    /// On which its owner was last, by the kernel's number. Which queues are near depends on it, nothing else does: relaxed.
    std::atomic<uint32_t> cpu;
  };
  QueueList* outgrown;
  uint32_t capacity;
  std::atomic<uint32_t> count;

  Entry& at(uint32_t i) { return reinterpret_cast<Entry*>(this + 1)[i]; }
  MemberQueue* queue(uint32_t i) { return at(i).queue.load(std::memory_order_relaxed); }
};

/// Twice as large as `old`, which may be null, with what is in that. Ends the program if there is no memory.
QueueList* make_list(QueueList* old);

/// The owner of the queue, which is in the list, tells thieves where it is; not where that makes no difference. A system call.
void note_place(QueueList* list, const MemberQueue* queue);

/// Where a thief is. Null: not known, or all are equally near.
struct ThiefPlace {
  const topology::Machine* machine = nullptr;
  const topology::Domain* pu = nullptr;
};
/// Of the owner of `queue`, which is in the list, at `now` (cycles). Reads the machine when the owner has been stealing for so long that
/// this is nothing beside it; preemption must be on.
ThiefPlace place_of_thief(QueueList* list, MemberQueue* queue, uint64_t now);

}  // namespace bosk::omp
