// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Changes to entities that may be on a queue at the time.
#include "threads/api.h"
#include "threads/lending.h"

namespace bosk::threads {
namespace {

using sched::RunQueue;
using sched::TreeEntity;

/// Calls f(queue) with the entity's queue locked, if it is on one: true. The guard that is held keeps its
/// runner from queueing it meanwhile. Of one that is in no bubble a worker may be on the way to queue it: it
/// has found it, and then it is open or about to be. `held`: its bubble holds it.
template <class F>
bool on_queue(TreeEntity& entity, F&& f, bool* held = nullptr) {
  sched::NestedBubble* bubble = entity.bubble;
  if (bubble == nullptr) {
    for (int tries = 0; tries < 64; ++tries) {
      RunQueue* queue = guess_holder(entity);
      if (queue == nullptr || queue->rank >= sched::kBubbleRank) return false;
      base::SpinGuard lock(queue->lock);
      if (guess_holder(entity) != queue) continue;
      f(*queue);
      return true;
    }
    return false;
  }
  for (RunQueue* queue = guess_queue(home(), entity);;) {
    if (queue != nullptr) queue->lock.lock();
    bubble->lock.lock();
    const bool is_held = entity.whereabouts == sched::Whereabouts::kHeld;
    RunQueue* wanted = is_held ? nullptr : entity.last_queue;
    const bool settled = wanted == queue;
    if (settled && held != nullptr) *held = is_held;
    const bool queued = settled && queue != nullptr && entity.holder == queue;
    if (queued) f(*queue);
    bubble->lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) return queued;
    queue = wanted;
  }
}

/// Calls f() while its bubble holds the entity, if it does: true.
template <class F>
bool if_held(const TreeEntity& entity, F&& f) {
  if (entity.bubble == nullptr) return false;
  base::SpinGuard lock(entity.bubble->lock);
  if (entity.whereabouts != sched::Whereabouts::kHeld) return false;
  f();
  return true;
}

/// A closed bubble on a domain's queue, or the outermost of those around it, is the next of its priority there,
/// and what comes out of it, too. The guard of something that it holds is held: it stays where that is. One
/// that a policy lets wait, or keeps, is the policy's business.
void bring_bubble_forward(BubbleRecord& bubble) {
  base::SpinGuard guard(bubble.guard);
  const bool queued = on_queue(bubble, [&](RunQueue& queue) {
    if (queue.rank >= home()->machine->n_domains || bubble.serving) return;
    queue.remove_locked(&bubble);
    queue.enqueue_locked(&bubble, true);
    bubble.in_front = true;
  });
  if (!queued && if_held(bubble, [&] { bubble.in_front = true; }))
    bring_bubble_forward(*bubble_of(bubble));
}

}  // namespace

bool take_off(TreeEntity& entity) {
  if (entity.bubble != nullptr) return sched::remove(entity);
  bool taken = false;
  on_queue(entity, [&](RunQueue& queue) {
    const auto* bubble = sched::as_bubble(&entity);
    taken = bubble == nullptr || !bubble->serving;
    if (taken) queue.remove_locked(&entity);
  });
  return taken;
}

bool take_to_run(ThreadRecord& thread) {
  return on_queue(thread, [&](RunQueue& queue) { queue.remove_locked(&thread); });
}

void bring_forward(ThreadRecord& thread) {
  bool held = false;
  on_queue(
      thread,
      [&](RunQueue& queue) {
        if (queue.first == &thread) return;
        queue.remove_locked(&thread);
        queue.enqueue_locked(&thread, true);
      },
      &held);
  if (held) bring_bubble_forward(*bubble_of(thread));
}

void change_priority(TreeEntity& entity, int32_t priority, bool nobody_has_it,
                     std::atomic<int32_t>& wanted) {
  // relaxed: who runs the entity looks at it now and then.
  const auto change = [&] {
    std::atomic_ref(entity.priority).store(priority, std::memory_order_relaxed);
    wanted.store(sched::kNoEntity, std::memory_order_relaxed);
  };
  if (nobody_has_it) {
    change();
    return;
  }
  if (on_queue(entity, [&](RunQueue& queue) {
        queue.remove_locked(&entity);
        change();
        queue.enqueue_locked(&entity);
      }))
    return;
  if (entity.bubble != nullptr) {
    // Who lets it out holds this lock.
    base::SpinGuard lock(entity.bubble->lock);
    if (entity.whereabouts == sched::Whereabouts::kHeld) {
      change();
      return;
    }
  }
  // Somebody has it, and may queue it this moment: a queue must not see the priority of what is on it change.
  wanted.store(priority, std::memory_order_relaxed);
}

void take_wanted_priority(TreeEntity& entity, std::atomic<int32_t>& wanted) {
  const int32_t priority = wanted.load(std::memory_order_relaxed);
  if (BOSK_LIKELY(priority == sched::kNoEntity)) return;
  if (wanted.exchange(sched::kNoEntity, std::memory_order_relaxed) == sched::kNoEntity) return;
  std::atomic_ref(entity.priority).store(priority, std::memory_order_relaxed);
}

void put_into(Home* h, BubbleRecord& bubble, ThreadRecord& thread, bool runs) {
  note_come(bubble, true);
  if (const RunQueue* queue = sched::insert(bubble, thread, runs))
    announce(h, queue->domain, 1);
  else
    announce_held(h, bubble);
}

}  // namespace bosk::threads
