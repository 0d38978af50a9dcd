// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Changes to entities that may be on a queue at the time.
#include "base/sanitizers.h"
#include "threads/api.h"

namespace bosk::threads {
namespace {

using sched::RunQueue;
using sched::TreeEntity;

/// A pointer that its owner may be writing: a guess at where to look, which the lock found there confirms
/// or not. Whole, because pointers are.
#if defined(BOSK_TSAN)
[[gnu::no_sanitize("thread"), gnu::noinline]]
#endif
RunQueue* guess(sched::Holder* const volatile* at) {
  return static_cast<RunQueue*>(*at);
}

/// Calls f() with the entity off its queue, under that queue's lock, if it belongs to no bubble and is on a
/// queue. `queue_again`: it goes back then. The guard that is held keeps its runner from queueing it
/// meanwhile; a worker that has found a bubble may do so, then it is open or on its way.
template <class F>
bool on_queue(TreeEntity& entity, bool queue_again, F&& f) {
  for (int tries = 0; tries < 64; ++tries) {
    RunQueue* queue = guess(&entity.holder);
    if (queue == nullptr || queue->rank >= sched::kFirstBubbleRank) return false;
    base::SpinGuard lock(queue->lock);
    if (guess(&entity.holder) != queue) continue;
    if (auto* bubble = sched::as_bubble(&entity); bubble != nullptr && bubble->serving)
      return false;
    queue->remove_locked(&entity);
    f();
    if (queue_again) queue->enqueue_locked(&entity);
    return true;
  }
  return false;
}

}  // namespace

bool take_off(TreeEntity& entity) {
  if (entity.bubble != nullptr) return sched::remove(entity);
  return on_queue(entity, false, [] {});
}

void change_priority(TreeEntity& entity, int32_t priority) {
  // relaxed: who runs the entity looks at it now and then.
  const auto change = [&] {
    std::atomic_ref(entity.priority).store(priority, std::memory_order_relaxed);
  };
  sched::NestedBubble* bubble = entity.bubble;
  if (bubble == nullptr) {
    if (!on_queue(entity, true, change)) change();
    return;
  }
  for (RunQueue* queue = nullptr;;) {
    if (queue != nullptr) queue->lock.lock();
    bubble->lock.lock();
    const bool held = entity.whereabouts == sched::Whereabouts::kHeld;
    RunQueue* wanted = held ? nullptr : entity.last_queue;
    const bool settled = held || wanted == queue;
    if (settled) {
      const bool queued = !held && queue != nullptr && entity.holder == queue;
      if (queued) queue->remove_locked(&entity);
      change();
      if (queued) queue->enqueue_locked(&entity);
    }
    bubble->lock.unlock();
    if (queue != nullptr) queue->lock.unlock();
    if (settled) return;
    queue = wanted;
  }
}

void put_into(Home* h, BubbleRecord& bubble, ThreadRecord& thread, bool runs) {
  note_come(bubble, true);
  sched::insert(bubble, thread, runs);
  if (runs) return;
  uint32_t domain = 0;
  bool open;
  {
    base::SpinGuard lock(bubble.lock);
    open = bubble.state == sched::BubbleState::kBurst;
    if (open) domain = bubble.burst_on->domain;
  }
  if (open) announce(h, domain, 1);
}

}  // namespace bosk::threads
