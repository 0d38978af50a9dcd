// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identities of ghosts.
#include "sched/ghost_identity.h"

#include "base/message.h"
#include "base/pages.h"

namespace bosk::sched {

context::Identity* fresh_identity(Thread* me) {
  constexpr uint32_t kTurnsBetweenRequests = 64;
  for (uint32_t turn = 1;; ++turn) {
    Worker* w = me->worker;
    if (context::Identity* identity = take_identity(w)) return identity;
    if (!w->ready.empty_hint()) {
      // Somebody who is ready may end and free one; and the factory may wait for a lock that a
      // preempted thread holds. Or all that are ready are here, and the factory has refused one.
      if (turn % kTurnsBetweenRequests == 0) request_carriers(1);
      yield(me);
      continue;
    }
    if (entities_of(w) != nullptr) {
      // The same of explicit threads.
      if (yield_to_started(me)) continue;
      w = me->worker;
    }
    wait_for_carrier(w);
  }
}

context::Identity* member_identity(Thread* me, uint32_t index) {
  Pool* pool = me->pool;
  const uint32_t at = index;
  base::SpinGuard guard(pool->member_lock);
  if (at >= pool->member_identity_count) {
    uint32_t count = pool->member_identity_count == 0 ? 64 : pool->member_identity_count;
    while (count <= at) count *= 2;
    // Not malloc: preemption is off.
    auto** bigger =
        static_cast<context::Identity**>(base::map_pages(count * sizeof(context::Identity*)));
    if (bigger == nullptr) base::gomp_fatal("Out of memory allocating a team");
    for (uint32_t i = 0; i < pool->member_identity_count; ++i)
      bigger[i] = pool->member_identities[i];
    base::unmap_pages(pool->member_identities,
                      pool->member_identity_count * sizeof(context::Identity*));
    pool->member_identities = bigger;
    pool->member_identity_count = count;
  }
  context::Identity* known = pool->member_identities[at];
  if (known != nullptr) return known;
  pool->member_lock.unlock();
  context::Identity* made = fresh_identity(me);
  pool->member_lock.lock();
  pool->member_identities[at] = made;
  return made;
}

void hold_identities(Bubble* bubble, context::Identity* first, context::Identity* last) {
  context::Identity* head = bubble->held.load(std::memory_order_relaxed);
  do last->next = head;
  // release: whoever takes the list sees the links.
  while (!bubble->held.compare_exchange_weak(head, first, std::memory_order_release,
                                             std::memory_order_relaxed));
}

context::Identity* held_identity(Bubble* bubble, uint32_t index) {
  // acquire: the links; nothing is taken off the list before the end.
  context::Identity* identity = bubble->held.load(std::memory_order_acquire);
  while (identity != nullptr && identity->member_index != index) identity = identity->next;
  return identity;
}

void release_identities(Worker* w, Bubble* bubble) {
  context::Identity* identity = bubble->held.exchange(nullptr, std::memory_order_acquire);
  while (identity != nullptr) {
    context::Identity* next = identity->next;
    give_carrier(w, own_thread(identity));
    identity = next;
  }
}

}  // namespace bosk::sched
