// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evolution of nested bubbles: bursting, closing, widening. The order of locks is in the header.
#include "base/assert.h"
#include "sched/bubble_tree.h"
#include "sched/bubble_tree_locked.h"
#include "sched/sequence.h"

namespace bosk::sched {
namespace {

using Guard = base::SpinGuard;

}  // namespace

bool take_in_hand(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  if (!bubble.take_in_hand()) return false;
  bubble.serving = false;
  return true;
}

void put_down(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  BOSK_ASSERT(bubble.state == BubbleState::kInHand);
  bubble.state = BubbleState::kClosed;
}

uint32_t burst(NestedBubble& bubble, RunQueue& queue, bool front) {
  uint32_t released = 0;
  bool awaited;
  NestedBubble* in_turn = nullptr;  // an empty bubble has ended when it bursts
  {
    NestedBubble* outer = bubble.bubble;
    Guard queue_guard(queue.lock);
    if (outer != nullptr) outer->lock.lock();
    bubble.lock.lock();
    BOSK_ASSERT(bubble.state == BubbleState::kInHand);
    // In front they stay in order if the last one is put there first.
    for (TreeEntity* member = front ? bubble.last_member : bubble.first_member; member != nullptr;
         member = front ? member->previous_member : member->next_member) {
      if (member->whereabouts != Whereabouts::kHeld || waits_for_others(bubble, *member)) continue;
      if (NestedBubble* inner = as_bubble(member))
        inner->home.store(&queue, std::memory_order_relaxed);
      put_out_locked(*member, queue, front);
      ++released;
    }
    if (BOSK_UNLIKELY(bubble.relation == Relation::kSequence)) note_sequence();
    bubble.open(bubble.ghosts());
    bubble.opening = false;
    bubble.burst_on = &queue;
    // Read in the same step as the state is set: who closes `outer` sees an open bubble and closes
    // it itself, or was here before and we see that it waits.
    awaited = bubble.whereabouts == Whereabouts::kAwaited;
    if (bubble.member_count == 0 && bubble.ghosts_left() == 0 && !awaited) in_turn = outer;
    bubble.serving = !awaited && bubble.ghosts_left() != 0;
    bubble.serves_closed = false;
    if (bubble.serving) put_out_locked(bubble, queue, true);
    bubble.lock.unlock();
    if (outer != nullptr) outer->lock.unlock();
  }
  if (awaited) close(bubble);
  if (in_turn != nullptr) advance_around(*in_turn);
  return released;
}

void release_to(TreeEntity& member, RunQueue& queue) {
  Guard queue_guard(queue.lock);
  Guard guard(member.bubble->lock);
  BOSK_ASSERT(member.whereabouts == Whereabouts::kHeld);
  member.bubble->opening = true;
  if (NestedBubble* inner = as_bubble(&member))
    inner->home.store(&queue, std::memory_order_relaxed);
  put_out_locked(member, queue, false);
}

void release_in_hand(NestedBubble& member) {
  Guard guard(member.bubble->lock);
  BOSK_ASSERT(member.whereabouts == Whereabouts::kHeld);
  member.whereabouts = Whereabouts::kOut;
  member.last_queue = nullptr;
  member.holder = nullptr;
}

RunQueue* serve_ghosts_from(NestedBubble& bubble, RunQueue& queue) {
  {
    Guard guard(bubble.lock);
    BOSK_ASSERT(bubble.state == BubbleState::kInHand);
    bubble.give_ghosts_back(bubble.ghosts());
    bubble.state = BubbleState::kClosed;
  }
  {
    // It is on no queue, so that the lock of the one that it is going to guards it as well.
    Guard guard(queue.lock);
    bubble.serving = bubble.serves_closed = true;
  }
  return requeue(bubble, queue, true);
}

namespace {

/// Which queue an open bubble serves ghosts on, if any: takes it off.
void stop_serving(NestedBubble& bubble, RunQueue* queue) {
  if (queue == nullptr) return;
  Guard guard(queue->lock);
  if (bubble.holder == queue) queue->remove_locked(&bubble);
  bubble.serving = bubble.serves_closed = false;
}

bool begin_closing(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  return begin_closing_locked(bubble);
}

/// What became of a member of a bubble that is being closed.
struct TakenBack {
  NestedBubble* open = nullptr;  ///< it has burst and must be closed first; it is in hand now
  bool runs = false;             ///< a thread that is awaited, and not blocked
};

/// Takes `member` of a closing bubble back, or notes that it is awaited.
TakenBack take_back(NestedBubble& bubble, TreeEntity& member) {
  NestedBubble* inner = as_bubble(&member);
  RunQueue* queue = nullptr;
  for (;;) {
    if (queue != nullptr) queue->lock.lock();
    bubble.lock.lock();
    const bool out = member.whereabouts == Whereabouts::kOut;
    RunQueue* wanted = out ? member.last_queue : nullptr;
    const bool settled = !out || wanted == queue;
    TakenBack result;
    if (settled) member.lent.store(false, std::memory_order_relaxed);
    if (settled && out) {
      const bool queued = queue != nullptr && member.holder == queue;
      if (queued) queue->remove_locked(&member);
      bool closed = queued;
      bool blocked = false;
      if (inner != nullptr) {
        Guard guard(inner->lock);
        if (queued && inner->serves_closed && inner->state == BubbleState::kClosed)
          inner->hold_ghosts(inner->ghosts());
        if (queued) inner->serving = inner->serves_closed = false;
        // Any other state than these two: a worker has it in hand and will bring it back.
        closed = queued && inner->state == BubbleState::kClosed;
        if (begin_closing_locked(*inner)) result.open = inner;
      } else if (!queued) {
        // relaxed: see note_blocked(). It may be stale when a waker is at requeue() now; that needs
        // our lock next, and finds that the member was not waited for.
        blocked = member.activity.load(std::memory_order_relaxed) == Activity::kBlocked;
        result.runs = !blocked;
      }
      if (closed)
        hold_locked(bubble, member);
      else if (!blocked)
        bubble.await(member.whereabouts);
    }
    bubble.lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) return result;
    queue = wanted;
  }
}

/// Takes `member` back if it waits on a queue and is not open.
void take_back_queued(NestedBubble& bubble, TreeEntity& member) {
  NestedBubble* inner = as_bubble(&member);
  RunQueue* queue = nullptr;
  for (;;) {
    if (queue != nullptr) queue->lock.lock();
    bubble.lock.lock();
    RunQueue* wanted = member.whereabouts == Whereabouts::kOut ? member.last_queue : nullptr;
    const bool settled = wanted == nullptr || wanted == queue;
    if (wanted != nullptr && settled && member.holder == queue &&
        (inner == nullptr || !inner->serving)) {
      queue->remove_locked(&member);
      hold_locked(bubble, member);
    }
    bubble.lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) return;
    queue = wanted;
  }
}

TreeEntity* first_of(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  return bubble.first_member;
}

TreeEntity* after(NestedBubble& bubble, const TreeEntity& member) {
  Guard guard(bubble.lock);
  return member.next_member;
}

bool end_closing(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  return bubble.end_closing();
}

}  // namespace

bool close(NestedBubble& root, RunQueue* to, const RecallHook& recall) {
  return begin_closing(root) && close_begun(root, to, recall);
}

bool close_begun(NestedBubble& root, RunQueue* to, const RecallHook& recall) {
  stop_serving(root, root.last_queue);
  if (to != nullptr) root.home.store(to, std::memory_order_relaxed);
  NestedBubble* bubble = &root;
  TreeEntity* member = first_of(root);
  for (;;) {
    if (member != nullptr) {
      const TakenBack taken = take_back(*bubble, *member);
      if (taken.runs && recall.call != nullptr) recall.call(recall.context, *member);
      if (taken.open != nullptr) {
        bubble = taken.open;
        member = first_of(*bubble);
      } else {
        member = after(*bubble, *member);
      }
      continue;
    }
    // An inner bubble cannot go away: the one around it is in our hand. The root can, once it is
    // put.
    NestedBubble* outer = bubble != &root ? bubble->bubble : nullptr;
    if (outer != nullptr) member = after(*outer, *bubble);
    RunQueue* back = way_home(*bubble);
    const bool closed = end_closing(*bubble);
    if (closed) requeue(*bubble, *back);
    if (outer == nullptr) return closed;
    bubble = outer;
  }
}

uint32_t widen_begun(NestedBubble& bubble, RunQueue& queue) {
  stop_serving(bubble, bubble.last_queue);
  for (TreeEntity* member = first_of(bubble); member != nullptr; member = after(bubble, *member))
    take_back_queued(bubble, *member);
  return burst(bubble, queue);
}

}  // namespace bosk::sched
