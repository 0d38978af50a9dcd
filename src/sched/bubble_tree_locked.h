// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps that membership and evolution of bubbles share; their callers hold the locks.
#pragma once

#include "sched/bubble_tree.h"

namespace bosk::sched {

/// The entity is in the bubble. True: the bubble is closed by that.
inline bool hold_locked(NestedBubble& bubble, TreeEntity& entity) {
  entity.holder = &bubble;
  return bubble.hold(entity.whereabouts);
}

/// Both the queue and the bubble that the entity belongs to, if any, are locked.
inline void put_out_locked(TreeEntity& entity, RunQueue& queue, bool front) {
  entity.whereabouts = Whereabouts::kOut;
  entity.last_queue = &queue;
  queue.enqueue_locked(&entity, front);
}

/// Somebody runs what he waits for of it (lend()). O(members), as to burst it is.
inline bool has_lent_locked(const NestedBubble& bubble) {
  for (const TreeEntity* m = bubble.first_member; m != nullptr; m = m->next_member)
    if (m->lent.load(std::memory_order_relaxed)) return true;
  return false;
}

/// Where a closed bubble goes. The bubble is locked, or in the caller's hand.
inline RunQueue* way_home(const NestedBubble& bubble) {
  RunQueue* home = bubble.home.load(std::memory_order_relaxed);
  return home != nullptr ? home : bubble.burst_on;
}

}  // namespace bosk::sched
