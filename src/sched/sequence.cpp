// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whose turn it is in a sequence.
#include "sched/sequence.h"

namespace bosk::sched {
namespace {

using Guard = base::SpinGuard;

bool has_ended(TreeEntity& entity);

/// The bubble is locked.
bool all_ended_locked(NestedBubble& bubble) {
  if (bubble.state != BubbleState::kBurst || bubble.ghosts_left() != 0) return false;
  for (TreeEntity* member = bubble.first_member; member != nullptr; member = member->next_member)
    if (!has_ended(*member)) return false;
  return true;
}

/// The bubble that it is in is locked. Recursion as deep as bubbles that have ended are nested.
bool has_ended(TreeEntity& entity) {
  NestedBubble* bubble = as_bubble(&entity);
  if (bubble == nullptr || entity.whereabouts != Whereabouts::kOut) return false;
  Guard guard(bubble->lock);
  return all_ended_locked(*bubble);
}

}  // namespace

RunQueue* advance(NestedBubble& sequence) {
  RunQueue* queue = nullptr;
  for (;;) {
    // Which queue to lock is known only under the bubble's lock, which comes after the queue's.
    if (queue != nullptr) queue->lock.lock();
    sequence.lock.lock();
    RunQueue* wanted = sequence.state == BubbleState::kBurst ? sequence.burst_on : nullptr;
    const bool settled = wanted == queue;
    TreeEntity* next = nullptr;
    if (settled && queue != nullptr) {
      next = sequence.first_member;
      while (next != nullptr && has_ended(*next)) next = next->next_member;
      if (next != nullptr && next->whereabouts != Whereabouts::kHeld) next = nullptr;
    }
    if (next != nullptr) {
      if (NestedBubble* inner = as_bubble(next))
        inner->home.store(queue, std::memory_order_relaxed);
      next->whereabouts = Whereabouts::kOut;
      next->last_queue = queue;
      queue->enqueue_locked(next);
    }
    sequence.lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) return next != nullptr ? queue : nullptr;
    queue = wanted;
  }
}

RunQueue* advance_around(NestedBubble& bubble) {
  for (NestedBubble* at = &bubble; at != nullptr;) {
    bool sequence;
    {
      Guard guard(at->lock);
      sequence = at->relation == Relation::kSequence;
    }
    if (sequence)
      if (RunQueue* queue = advance(*at)) return queue;
    Guard guard(at->lock);
    if (!all_ended_locked(*at)) return nullptr;
    // relaxed: it may be taken out meanwhile, or have gone; then there is nothing to be done further out.
    at = std::atomic_ref(at->bubble).load(std::memory_order_relaxed);
  }
  return nullptr;
}

}  // namespace bosk::sched
