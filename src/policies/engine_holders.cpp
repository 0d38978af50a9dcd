// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What policies hold themselves, and lets out again.
#include <new>

#include "policies/engine.h"

namespace bosk::policies {

using sched::NestedBubble;
using sched::RunQueue;
using sched::TreeEntity;

/// The bubble, in hand, goes into a holder (or back into its own bubble, if that is closing).
void PolicyEngine::keep(NestedBubble& bubble, uint32_t holder, uint64_t load) {
  unbook(bubble);
  bubble.booked_load = load;
  bubble.released = false;
  sched::put_down(bubble);
  sched::requeue(bubble, *holders_.of(holder));
}

uint32_t PolicyEngine::held(uint32_t holder) {
  RunQueue* queue = holders_.of(holder);
  if (queue == nullptr) return 0;
  base::SpinGuard guard(queue->lock);
  return queue->length;
}

uint32_t PolicyEngine::release_held(uint32_t holder, uint32_t most, uint32_t domain,
                                    EntityToken only) {
  RunQueue* queue = holders_.of(holder);
  if (queue == nullptr || domain >= machine().n_domains) return 0;
  uint32_t released = 0;
  for (; released < most; ++released) {
    sched::Entity* found = HolderSet::take(*queue, only);
    if (found == nullptr) break;
    // Off its holder it is ours, as if a search had found it.
    auto& entity = *static_cast<TreeEntity*>(found);
    if (NestedBubble* bubble = sched::as_bubble(&entity)) bubble->released = true;
    book(entity, entity.booked_load, domain);
    wake(entity, domain);
  }
  return released;
}

void PolicyEngine::forget_after_fork() {
  new (&scratch_) ScratchPool<WorkScratch>;
  new (&present_) ScratchPool<PresentScratch>;
  holders_.forget_after_fork();
  if (rooms_ != nullptr) clear_rooms();
  for (uint32_t i = 0; i < n_active_; ++i)
    if (active_[i].ops->forked != nullptr) active_[i].ops->forked(active_[i].state);
  if (gangs_.ops != nullptr) gangs_.ops->forked(gangs_.state);
  forget_chosen_after_fork();
}

}  // namespace bosk::policies
