// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Membership of nested bubbles, and how members stop running. The order of locks is in the header.
#include "sched/bubble_tree.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "sched/bubble_tree_locked.h"
#include "sched/sequence.h"

namespace bosk::sched {
namespace {

using Guard = base::SpinGuard;

void append_locked(NestedBubble& bubble, TreeEntity& entity) {
  // Atomic for advance_around().
  std::atomic_ref(entity.bubble).store(&bubble, std::memory_order_relaxed);
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
  std::atomic_ref<NestedBubble*>(entity.bubble).store(nullptr, std::memory_order_relaxed);
  entity.next_member = entity.previous_member = nullptr;
  entity.whereabouts = Whereabouts::kOut;
  entity.lent.store(false, std::memory_order_relaxed);
  entity.last_queue = nullptr;
}

/// May the entity be put on a queue? While its bubble is opened, what was let out already comes and goes (it
/// may yield before the last of them is out): in the bubble, it would come out with the rest, elsewhere. So does
/// what was lent, as long as the bubble lies closed.
bool is_out(const NestedBubble& bubble, const TreeEntity& entity) {
  if (bubble.state == BubbleState::kBurst) return true;
  const bool lies =
      bubble.state == BubbleState::kClosed && entity.lent.load(std::memory_order_relaxed);
  return (bubble.opening || lies) && entity.whereabouts == Whereabouts::kOut;
}

/// Ready on `queue`, or in its bubble. Returns the bubble if that closed it: it now has to go home. (The
/// entity cannot be asked for it any more: somebody may have removed it from there.)
NestedBubble* put(TreeEntity& entity, RunQueue& queue, bool front, bool* queued) {
  entity.activity.store(Activity::kReady, std::memory_order_relaxed);
  Guard queue_guard(queue.lock);
  NestedBubble* bubble = entity.bubble;
  if (bubble == nullptr) {
    put_out_locked(entity, queue, front);
    *queued = true;
    return nullptr;
  }
  Guard guard(bubble->lock);
  *queued = is_out(*bubble, entity);
  if (!*queued) return hold_locked(*bubble, entity) ? bubble : nullptr;
  put_out_locked(entity, queue, front);
  return nullptr;
}

}  // namespace

RunQueue* insert(NestedBubble& bubble, TreeEntity& entity, bool runs) {
  BOSK_ASSERT(entity.bubble == nullptr && entity.holder == nullptr);
  RunQueue* queue = nullptr;
  for (;;) {
    if (queue != nullptr) queue->lock.lock();
    bubble.lock.lock();
    const bool sequence = bubble.relation == Relation::kSequence;
    if (BOSK_UNLIKELY(sequence)) note_sequence();
    const bool comes_out = bubble.state == BubbleState::kBurst && !runs && !sequence;
    // Which queue to lock is known only under the bubble's lock, which comes after the queue's.
    const bool settled = !comes_out || bubble.burst_on == queue;
    RunQueue* wanted = comes_out ? bubble.burst_on : nullptr;
    if (settled) {
      append_locked(bubble, entity);
      entity.last_queue = nullptr;
      entity.whereabouts = Whereabouts::kOut;
      if (comes_out) {
        if (NestedBubble* inner = as_bubble(&entity))
          inner->home.store(queue, std::memory_order_relaxed);
        put_out_locked(entity, *queue, false);
      } else if (!runs) {
        hold_locked(bubble, entity);
      }
    }
    bubble.lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) return sequence ? advance(bubble) : wanted;
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
      if (removed && bubble.relation == Relation::kSequence) advance(bubble);
      return removed;
    }
    if (in_hand) base::cpu_pause();
    queue = wanted;
  }
}

bool retire(NestedBubble& bubble) {
  NestedBubble* outer = bubble.bubble;
  if (bubble.team != nullptr) return false;
  if (outer != nullptr) outer->lock.lock();
  bubble.lock.lock();
  // Of one that is in no bubble, whereabouts belongs to whoever has its queue's lock; it is out.
  const Whereabouts where = outer != nullptr ? bubble.whereabouts : Whereabouts::kOut;
  const bool open = bubble.state == BubbleState::kBurst && where == Whereabouts::kOut;
  const bool held = bubble.state == BubbleState::kClosed && where == Whereabouts::kHeld;
  const bool retires = (open || held) && bubble.first_member == nullptr &&
                       (outer == nullptr || (outer->state != BubbleState::kInHand &&
                                             outer->relation != Relation::kSequence));
  if (retires) {
    bubble.state = BubbleState::kClosed;
    if (held) bubble.holder = nullptr;
    if (outer != nullptr) unlink_locked(*outer, bubble);
  }
  bubble.lock.unlock();
  if (outer != nullptr) outer->lock.unlock();
  return retires;
}

bool lend(TreeEntity& thread) {
  NestedBubble& bubble = *thread.bubble;
  Guard guard(bubble.lock);
  if (bubble.state != BubbleState::kClosed || bubble.burst_on != nullptr ||
      thread.whereabouts != Whereabouts::kHeld || bubble.relation != Relation::kNone)
    return false;
  thread.whereabouts = Whereabouts::kOut;
  thread.lent.store(true, std::memory_order_relaxed);
  thread.holder = nullptr;
  return true;
}

RunQueue* leave(TreeEntity& entity) {
  NestedBubble* bubble = entity.bubble;
  for (;;) {
    bubble->lock.lock();
    if (bubble->state != BubbleState::kInHand) break;
    bubble->lock.unlock();
    base::cpu_pause();
  }
  const bool closed = bubble->let_go(entity.whereabouts);
  unlink_locked(*bubble, entity);
  // Is somebody's turn now?
  const bool ends = BOSK_UNLIKELY(are_sequences()) &&
                    (bubble->relation == Relation::kSequence || bubble->first_member == nullptr ||
                     bubble->first_member->kind == EntityKind::kBubble);
  RunQueue* back = way_home(*bubble);
  bubble->lock.unlock();
  if (closed) return requeue(*bubble, *back);
  return ends ? advance_around(*bubble) : nullptr;
}

RunQueue* note_blocked(TreeEntity& entity) {
  // relaxed: who closes the bubble reads it under the bubble's lock, which we take next. Before us, it
  // has counted the entity, and we take that back; after us, it sees this.
  entity.activity.store(Activity::kBlocked, std::memory_order_relaxed);
  NestedBubble* bubble = entity.bubble;
  if (bubble == nullptr) return nullptr;
  bubble->lock.lock();
  const bool awaited = entity.whereabouts == Whereabouts::kAwaited;
  const bool closed = awaited && bubble->let_go(entity.whereabouts);
  RunQueue* back = way_home(*bubble);
  bubble->lock.unlock();
  return closed ? requeue(*bubble, *back) : nullptr;
}

RunQueue* requeue(TreeEntity& entity, RunQueue& queue, bool front) {
  TreeEntity* at = &entity;
  RunQueue* to = &queue;
  for (bool queued = false;;) {
    NestedBubble* closed = put(*at, *to, front, &queued);
    if (closed == nullptr) return queued ? to : nullptr;
    // It is nobody's but ours, until it is put in turn.
    to = way_home(*closed);
    front = false;
    at = closed;
  }
}

}  // namespace bosk::sched
