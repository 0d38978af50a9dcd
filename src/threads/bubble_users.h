// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who in a bubble uses which memory, and from which node: for locality/users.h.
//
// In two steps, because the tree is guarded by locks that spin and the books by one that sleeps: first everybody in the
// bubble is written down, then the books are asked what each of them has attached.
//
// Threads of one bubble that are on one node, and have nothing attached themselves, are one user: of what is attached to
// the bubbles around them. A thread that has something is a user of its own. What is attached to a bubble is shared out
// among all threads in it.
#pragma once

#include "locality/users.h"
#include "sched/bubble_tree.h"

namespace bosk::threads {

/// Of a bubble, as it was when somebody looked.
struct PresentEntity {
  uint32_t parent;   ///< index; kNone: the outermost
  uint32_t node;     ///< kNone: on a domain of several nodes, or nobody knows
  uint32_t threads;  ///< in it; of a thread 1
  const std::atomic<uint64_t>* footprint;
  bool is_bubble;
};

class BubbleUsers {
 public:
  /// Everybody in the bubble. Preemption is off, and the caller keeps the bubble from going away. False: out of memory.
  bool list(sched::NestedBubble& bubble, const topology::Machine& machine);
  /// Has anybody anything attached?
  bool any() const { return any_; }
  uint32_t threads_on(memory::NodeIndex node) const;
  /// Asks the books, with preemption on, and writes down who uses what. `refresh`: asks the kernel where the pages are first. False:
  /// out of memory.
  bool ask(memory::AreaTable& areas, bool refresh, locality::Users* users);
  void release();

 private:
  struct Attached {
    uint32_t first;
    uint32_t count;
  };

  static void enter(void* self, sched::TreeEntity& entity);
  bool ask_for(memory::AreaTable& areas, uint32_t entity, bool refresh);
  bool add_user(uint32_t thread, uint32_t threads, locality::Users* users);

  const topology::Machine* machine_ = nullptr;
  bool enough_ = true;
  bool any_ = false;
  base::MappedArray<PresentEntity> present_;
  base::MappedArray<sched::TreeEntity*> who_;  // to be compared only
  base::MappedArray<Attached> attached_;       // per entity: in found_
  base::MappedArray<memory::AreaUse> found_;
  base::MappedArray<uint32_t> plain_;  // per node: threads of a bubble that have nothing themselves
};

}  // namespace bosk::threads
