// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Membership of nested bubbles, bursting and regeneration. The order of locks is in the header.
#include "sched/bubble_tree.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "sched/sequence.h"

namespace bosk::sched {
namespace {

using Guard = base::SpinGuard;

void append_locked(NestedBubble& bubble, TreeEntity& entity) {
  entity.bubble = &bubble;
  entity.next_member = nullptr;
  entity.previous_member = bubble.last_member;
  if (bubble.last_member != nullptr)
    bubble.last_member->next_member = &entity;
  else
    bubble.first_member = &entity;
  bubble.last_member = &entity;
  ++bubble.member_count;
}

void unlink_locked(NestedBubble& bubble, TreeEntity& entity) {
  if (entity.previous_member != nullptr)
    entity.previous_member->next_member = entity.next_member;
  else
    bubble.first_member = entity.next_member;
  if (entity.next_member != nullptr)
    entity.next_member->previous_member = entity.previous_member;
  else
    bubble.last_member = entity.previous_member;
  --bubble.member_count;
  entity.bubble = nullptr;
  entity.next_member = entity.previous_member = nullptr;
  entity.whereabouts = Whereabouts::kOut;
  entity.last_queue = nullptr;
}

/// One that was awaited is not any more. True: the bubble is closed by that.
bool one_less_awaited_locked(NestedBubble& bubble) {
  if (--bubble.awaited != 0 || bubble.state != BubbleState::kClosing) return false;
  bubble.state = BubbleState::kClosed;
  return true;
}

/// The entity is in the bubble. True: the bubble is closed by that.
bool hold_locked(NestedBubble& bubble, TreeEntity& entity) {
  const bool awaited = entity.whereabouts == Whereabouts::kAwaited;
  entity.whereabouts = Whereabouts::kHeld;
  entity.holder = &bubble;
  return awaited && one_less_awaited_locked(bubble);
}

/// Both the queue and the bubble that the entity belongs to, if any, are locked.
void put_out_locked(TreeEntity& entity, RunQueue& queue, bool front) {
  entity.whereabouts = Whereabouts::kOut;
  entity.last_queue = &queue;
  queue.enqueue_locked(&entity, front);
}

/// Ready on `queue`, or in its bubble. True: that closed the bubble, which now has to go home.
bool put(TreeEntity& entity, RunQueue& queue, bool front, bool* queued) {
  entity.activity.store(Activity::kReady, std::memory_order_relaxed);
  Guard queue_guard(queue.lock);
  NestedBubble* bubble = entity.bubble;
  if (bubble == nullptr) {
    put_out_locked(entity, queue, front);
    *queued = true;
    return false;
  }
  Guard guard(bubble->lock);
  *queued = bubble->state == BubbleState::kBurst;
  if (!*queued) return hold_locked(*bubble, entity);
  put_out_locked(entity, queue, front);
  return false;
}

void set_depths(NestedBubble& root) {
  for (TreeEntity* at = &root;;) {
    NestedBubble* bubble = as_bubble(at);
    if (bubble != nullptr)
      bubble->rank = bubble->bubble != nullptr ? bubble->bubble->rank + 1 : kFirstBubbleRank;
    if (bubble != nullptr && bubble->first_member != nullptr) {
      at = bubble->first_member;
      continue;
    }
    while (at != &root && at->next_member == nullptr) at = at->bubble;
    if (at == &root) return;
    at = at->next_member;
  }
}

}  // namespace

void insert(NestedBubble& bubble, TreeEntity& entity, bool runs) {
  BOSK_ASSERT(entity.bubble == nullptr && entity.holder == nullptr);
  if (NestedBubble* inner = as_bubble(&entity)) {
    BOSK_ASSERT(inner->state == BubbleState::kClosed);
    inner->rank = bubble.rank + 1;
    if (inner->first_member != nullptr) {
      // Nobody else sees the inner bubble yet, so that its tree needs no locks.
      inner->bubble = &bubble;
      set_depths(*inner);
    }
  }
  RunQueue* queue = nullptr;
  for (;;) {
    if (queue != nullptr) queue->lock.lock();
    bubble.lock.lock();
    const bool sequence = bubble.relation == Relation::kSequence;
    const bool comes_out = bubble.state == BubbleState::kBurst && !runs && !sequence;
    // Which queue to lock is known only under the bubble's lock, which comes after the queue's.
    const bool settled = !comes_out || bubble.burst_on == queue;
    RunQueue* wanted = comes_out ? bubble.burst_on : nullptr;
    if (settled) {
      append_locked(bubble, entity);
      entity.last_queue = nullptr;
      entity.whereabouts = Whereabouts::kOut;
      if (comes_out) {
        if (NestedBubble* inner = as_bubble(&entity)) inner->home = queue;
        put_out_locked(entity, *queue, false);
      } else if (!runs) {
        hold_locked(bubble, entity);
      }
    }
    bubble.lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) {
      if (sequence) advance(bubble);
      return;
    }
    queue = wanted;
  }
}

bool remove(TreeEntity& entity) {
  NestedBubble& bubble = *entity.bubble;
  RunQueue* queue = nullptr;
  for (;;) {
    if (queue != nullptr) queue->lock.lock();
    bubble.lock.lock();
    const bool in_hand = bubble.state == BubbleState::kInHand;
    const bool held = entity.whereabouts == Whereabouts::kHeld;
    RunQueue* wanted = held ? nullptr : entity.last_queue;
    const bool settled = !in_hand && (held || wanted == queue);
    bool removed = false;
    if (settled) {
      if (held) {
        entity.holder = nullptr;
        removed = true;
      } else if (queue != nullptr && entity.holder == queue) {
        // A bubble that has burst and is queued for its ghosts has members out in the machine.
        const NestedBubble* inner = as_bubble(&entity);
        removed = inner == nullptr || !inner->serving;
        if (removed) queue->remove_locked(&entity);
      }
      if (removed) unlink_locked(bubble, entity);
    }
    bubble.lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) {
      if (NestedBubble* inner = as_bubble(&entity); removed && inner != nullptr) set_depths(*inner);
      if (removed && bubble.relation == Relation::kSequence) advance(bubble);
      return removed;
    }
    if (in_hand) base::cpu_pause();
    queue = wanted;
  }
}

RunQueue* leave(TreeEntity& entity) {
  NestedBubble* bubble = entity.bubble;
  for (;;) {
    bubble->lock.lock();
    if (bubble->state != BubbleState::kInHand) break;
    bubble->lock.unlock();
    base::cpu_pause();
  }
  const bool awaited = entity.whereabouts == Whereabouts::kAwaited;
  unlink_locked(*bubble, entity);
  const bool closed = awaited && one_less_awaited_locked(*bubble);
  // Is somebody's turn now?
  const bool ends = bubble->relation == Relation::kSequence || bubble->first_member == nullptr ||
                    bubble->first_member->kind == EntityKind::kBubble;
  RunQueue* back = bubble->home != nullptr ? bubble->home : bubble->burst_on;
  bubble->lock.unlock();
  if (closed) return requeue(*bubble, *back);
  return ends ? advance_around(*bubble) : nullptr;
}

RunQueue* requeue(TreeEntity& entity, RunQueue& queue, bool front) {
  TreeEntity* at = &entity;
  RunQueue* to = &queue;
  for (bool queued = false;;) {
    if (!put(*at, *to, front, &queued)) return queued ? to : nullptr;
    // The bubble is closed and nobody's but ours, until it is put in turn.
    NestedBubble* closed = at->bubble;
    to = closed->home != nullptr ? closed->home : closed->burst_on;
    front = false;
    at = closed;
  }
}

bool take_in_hand(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  if (bubble.state != BubbleState::kClosed) return false;
  bubble.state = BubbleState::kInHand;
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
      if (NestedBubble* inner = as_bubble(member)) inner->home = &queue;
      put_out_locked(*member, queue, front);
      ++released;
    }
    bubble.state = BubbleState::kBurst;
    bubble.burst_on = &queue;
    // Read in the same step as the state is set: who closes `outer` sees an open bubble and closes
    // it itself, or was here before and we see that it waits.
    awaited = bubble.whereabouts == Whereabouts::kAwaited;
    if (bubble.member_count == 0 && bubble.ghosts_left() == 0 && !awaited) in_turn = outer;
    bubble.serving = !awaited && bubble.ghosts_left() != 0;
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
  if (NestedBubble* inner = as_bubble(&member)) inner->home = &queue;
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
  put_down(bubble);
  {
    // It is on no queue, so that the lock of the one that it is going to guards it as well.
    Guard guard(queue.lock);
    bubble.serving = true;
  }
  return requeue(bubble, queue, true);
}

namespace {

/// Which queue an open bubble serves ghosts on, if any: takes it off.
void stop_serving(NestedBubble& bubble, RunQueue* queue) {
  if (queue == nullptr) return;
  Guard guard(queue->lock);
  if (bubble.holder == queue) queue->remove_locked(&bubble);
  bubble.serving = false;
}

bool begin_closing(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  if (bubble.state != BubbleState::kBurst) return false;
  bubble.state = BubbleState::kInHand;
  bubble.awaited = 0;
  return true;
}

/// Takes `member` of a closing bubble back, or notes that it is awaited. Returns a bubble that has
/// burst and must be closed first (it is in hand then).
NestedBubble* take_back(NestedBubble& bubble, TreeEntity& member) {
  NestedBubble* inner = as_bubble(&member);
  RunQueue* queue = nullptr;
  for (;;) {
    if (queue != nullptr) queue->lock.lock();
    bubble.lock.lock();
    const bool out = member.whereabouts == Whereabouts::kOut;
    RunQueue* wanted = out ? member.last_queue : nullptr;
    const bool settled = !out || wanted == queue;
    NestedBubble* open = nullptr;
    if (settled && out) {
      const bool queued = queue != nullptr && member.holder == queue;
      if (queued) queue->remove_locked(&member);
      bool closed = queued;
      if (inner != nullptr) {
        Guard guard(inner->lock);
        if (queued) inner->serving = false;
        // Any other state than these two: a worker has it in hand and will bring it back.
        closed = queued && inner->state == BubbleState::kClosed;
        if (inner->state == BubbleState::kBurst) {
          inner->state = BubbleState::kInHand;
          inner->awaited = 0;
          open = inner;
        }
      }
      if (closed) {
        hold_locked(bubble, member);
      } else {
        member.whereabouts = Whereabouts::kAwaited;
        ++bubble.awaited;
      }
    }
    bubble.lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) return open;
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

/// All members were looked at. True: it is closed.
bool end_closing(NestedBubble& bubble) {
  Guard guard(bubble.lock);
  bubble.state = bubble.awaited == 0 ? BubbleState::kClosed : BubbleState::kClosing;
  return bubble.awaited == 0;
}

}  // namespace

bool close(NestedBubble& root, RunQueue* to) {
  if (!begin_closing(root)) return false;
  stop_serving(root, root.last_queue);
  if (to != nullptr) root.home = to;
  NestedBubble* bubble = &root;
  TreeEntity* member = first_of(root);
  for (;;) {
    if (member != nullptr) {
      if (NestedBubble* open = take_back(*bubble, *member)) {
        bubble = open;
        member = first_of(*open);
      } else {
        member = after(*bubble, *member);
      }
      continue;
    }
    // An inner bubble cannot go away: the one around it is in our hand. The root can, once it is
    // put.
    NestedBubble* outer = bubble != &root ? bubble->bubble : nullptr;
    if (outer != nullptr) member = after(*outer, *bubble);
    RunQueue* back = bubble->home != nullptr ? bubble->home : bubble->burst_on;
    const bool closed = end_closing(*bubble);
    if (closed) requeue(*bubble, *back);
    if (outer == nullptr) return closed;
    bubble = outer;
  }
}

}  // namespace bosk::sched
