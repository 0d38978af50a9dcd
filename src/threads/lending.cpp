// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who may borrow, and who is told.
#include "threads/lending.h"

#include <algorithm>

#include "threads/api.h"

namespace bosk::threads {
namespace {

/// Relaxed: wishes come before the bubble is woken, and whoever has its threads to join comes after that.
constinit std::atomic<bool> wishes{false};

const BubbleRecord* around(const BubbleRecord& bubble) {
  // relaxed: a hint; it changes under the guard.
  return static_cast<BubbleRecord*>(
      std::atomic_ref(const_cast<BubbleRecord&>(bubble).bubble).load(std::memory_order_relaxed));
}

/// Where what the bubble lends to the joiner has its place; topology::kNone: nobody has woken it, or it is being
/// handled. A guess: the bubble may go to another place at any moment, and does not mind then.
uint32_t place_of(const Home* h, const BubbleRecord& bubble, const ThreadRecord& joiner) {
  if (const sched::RunQueue* queue = guess_queue(h, bubble)) return queue->domain;
  const BubbleRecord* outer = around(bubble);
  const bool in_lenders =
      outer != nullptr && outer == joiner.bubble && joiner.lent.load(std::memory_order_relaxed);
  return in_lenders ? joiner.domain : topology::kNone;
}

}  // namespace

void note_wish() {
  if (!wishes.load(std::memory_order_relaxed)) wishes.store(true, std::memory_order_relaxed);
}

sched::Thread* borrow(Home* h, const sched::Thread* me, ThreadRecord& thread) {
  const ThreadRecord* joiner = running(me);
  if (joiner == nullptr || h->lend_within == nullptr || wishes.load(std::memory_order_relaxed))
    return nullptr;
  const uint32_t place = place_of(h, *bubble_of(thread), *joiner);
  if (place == topology::kNone) return nullptr;
  const topology::Domain* all = h->machine->domain_array;
  const uint32_t pu = sched::pu_of_worker(*h->machine, me->worker->index);
  if (!all[place].contains_pu(pu) || all[place].depth < all[h->lend_within[pu]].depth)
    return nullptr;
  // What is more urgent comes first. Of its equals it does, as in bring_forward().
  const int32_t priority = std::min<int32_t>(thread.priority, sched::kDefaultPriority);
  if (sched::has_entities(me->worker, priority)) return nullptr;
  sched::Thread* carrier = sched::carrier_to_go_on(me);
  if (carrier == nullptr) return nullptr;
  if (!sched::lend(thread)) {
    sched::give_carrier(me->worker, carrier);
    return nullptr;
  }
  thread.domain = place;
  if (BOSK_LIKELY(thread.context == nullptr)) return carrier;
  // It has started, and was woken while a worker had its bubble in hand.
  sched::give_carrier(me->worker, carrier);
  if (const sched::RunQueue* queue = sched::requeue(thread, h->queues.of(place), true))
    announce(h, queue->domain, 1);
  return nullptr;
}

void announce_outermost(Home* h, const BubbleRecord& bubble) {
  for (const BubbleRecord* at = &bubble; at != nullptr; at = around(*at))
    if (const sched::RunQueue* queue = guess_queue(h, *at)) {
      announce(h, queue->domain, 1);
      return;
    }
}

}  // namespace bosk::threads
