// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hierarchical search: what a PU runs next (2005 §3.3.2 and §4).
//
// Of all entities on the queues that cover the PU, the one of highest priority; at equal priority
// the more local one; on one queue the one that waits longest. Two passes:
//
//   1. Without a lock, read the best priority of every queue of the path. Cost: one load per level.
//   2. Lock the queue that had the highest, and see whether it still has an entity of that
//      priority. If somebody was faster, start again; then somebody else did get on.
//
// The answer is right for some moment between the two passes as far as the chosen queue goes. An
// entity that appears elsewhere during the search may be missed by this search: whoever enqueues
// for a worker that may be asleep has to wake it (the fence is there, see RunQueue::best).
//
// Everything here is called with preemption off. No call is made through a pointer unless a bubble
// is found; then it is the caller's function.
#pragma once

#include <stdint.h>

#include "base/assert.h"
#include "base/cpu.h"
#include "sched/bubble_tree.h"
#include "sched/domain_queues.h"

namespace bosk::sched {

/// What a search comes back with. Nothing, or one of the two.
struct Found {
  Entity* entity = nullptr;   ///< a thread; it is off its queue and belongs to the caller
  Bubble* ghosts = nullptr;   ///< a team to claim a ghost from (the claim may come too late)
  RunQueue* queue = nullptr;  ///< where it was found
  explicit operator bool() const { return queue != nullptr; }
};

/// Says what a search did; the default says nothing and costs nothing. Tests count with it.
struct NoObserver {
  void looked(const RunQueue&) const {}  ///< first pass: one queue read
  void locked(const RunQueue&) const {}  ///< second pass: one queue locked
  void missed(const RunQueue&) const {}  ///< somebody was faster
};

/// The first pass.
struct Candidate {
  RunQueue* queue = nullptr;  ///< null: no queue has anything above `above`
  int32_t priority = kNoEntity;
};
template <class Observer>
inline Candidate look(const QueuePath& path, int32_t above, const Observer& observer) {
  Candidate best{nullptr, above};
  for (uint32_t level = 0; level < path.length; ++level) {
    RunQueue* queue = path.queue[level];
    observer.looked(*queue);
    // relaxed: only a hint, see RunQueue::best. Strictly greater: the more local one wins a tie.
    const int32_t priority = queue->best.load(std::memory_order_relaxed);
    if (priority > best.priority) best = {queue, priority};
  }
  return best;
}

/// Least `above` for whoever wants an entity of at least `priority`.
constexpr int32_t just_below(int32_t priority) {
  return priority == kNoEntity ? kNoEntity : priority - 1;
}

/// The whole search, for entities whose priority is greater than `above`.
///
/// on_bubble(NestedBubble&, RunQueue&) → Found is called when the best entity is a bubble, without
/// any lock; the bubble is off the queue and belongs to the callee, who must put it somewhere
/// (lower, burst, or back). It returns what to run, or nothing: then the search looks again. It
/// must have got on (a bubble that is put back where it was is found again, for ever).
template <class OnBubble, class Observer = NoObserver>
inline Found find_work(const QueuePath& path, OnBubble&& on_bubble, int32_t above = kNoEntity,
                       const Observer& observer = {}) {
  for (;;) {
    const Candidate best = look(path, above, observer);
    if (best.queue == nullptr) return {};
    RunQueue& queue = *best.queue;
    queue.lock.lock();
    observer.locked(queue);
    Entity* entity = queue.first;
    if (BOSK_UNLIKELY(entity == nullptr || entity->priority < best.priority)) {
      queue.lock.unlock();
      observer.missed(queue);
      continue;
    }
    if (BOSK_LIKELY(entity->kind == EntityKind::kThread)) {
      queue.remove_locked(entity);
      queue.lock.unlock();
      return {entity, nullptr, &queue};
    }
    auto* bubble = static_cast<NestedBubble*>(entity);
    // Ghosts are served from where the bubble is: nothing is taken off the queue. The team object
    // is type-stable, so it may be used after the lock; the bubble may not.
    if (Bubble* team = bubble->team;
        bubble->serving && team != nullptr && team->ghosts.left() != 0) {
      queue.lock.unlock();
      return {nullptr, team, &queue};
    }
    const bool was_open = bubble->serving && !bubble->serves_closed;
    bubble->serving = bubble->serves_closed = false;
    queue.remove_locked(entity);
    queue.lock.unlock();
    // It was here for its ghosts only. Off the queue it may be closed by others at any moment, so that
    // it is not ours to hand on.
    if (was_open) continue;
    if (Found found = on_bubble(*bubble, queue)) return found;
  }
}

/// The search for who knows that no bubbles are on these queues, or handles one itself: the best
/// entity, off its queue; null: nothing above `above`.
template <class Observer = NoObserver>
inline Entity* take_best(const QueuePath& path, int32_t above = kNoEntity,
                         const Observer& observer = {}) {
  for (;;) {
    const Candidate best = look(path, above, observer);
    if (best.queue == nullptr) return nullptr;
    base::SpinGuard guard(best.queue->lock);
    observer.locked(*best.queue);
    Entity* entity = best.queue->first;
    if (BOSK_LIKELY(entity != nullptr && entity->priority >= best.priority)) {
      best.queue->remove_locked(entity);
      return entity;
    }
    observer.missed(*best.queue);
  }
}

/// The search that also lets go of the current entity, in one step: `current` goes behind its
/// equals on `home`, and the best of the others, if it has at least current's priority, comes off
/// its queue. Both queues are locked, the one of smaller rank first. Null: there is none, `current`
/// stays on.
///
/// Only for an entity that anybody may run the moment it is queued, and that belongs to no nested
/// bubble. A thread that still stands on its stack is queued after it left: find_work(), switch,
/// and enqueue() or requeue() in the post action.
template <class Observer = NoObserver>
inline Entity* exchange_best(const QueuePath& path, Entity* current, RunQueue& home,
                             const Observer& observer = {}) {
  BOSK_ASSERT(current->holder == nullptr);
  for (;;) {
    const Candidate best = look(path, just_below(current->priority), observer);
    if (best.queue == nullptr) return nullptr;
    RunQueue* high = best.queue->rank <= home.rank ? best.queue : &home;
    RunQueue* low = high == best.queue ? &home : best.queue;
    high->lock.lock();
    if (low != high) low->lock.lock();
    observer.locked(*best.queue);
    Entity* entity = best.queue->first;
    const bool found = entity != nullptr && entity->priority >= best.priority;
    if (BOSK_LIKELY(found)) {
      best.queue->remove_locked(entity);
      home.enqueue_locked(current);
    }
    if (low != high) low->lock.unlock();
    high->lock.unlock();
    if (BOSK_LIKELY(found)) return entity;
    observer.missed(*best.queue);
  }
}

}  // namespace bosk::sched
