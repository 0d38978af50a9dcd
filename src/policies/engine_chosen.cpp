// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Policies that bubbles ask for: by name, or by standing for a gang.
//
// The nearest wish counts, from the bubble outwards: O(depth). A policy that was chosen once is kept until
// the engine stops, because any worker may be in its hooks.
#include <string.h>

#include <new>

#include "policies/engine.h"

namespace bosk::policies {

using sched::NestedBubble;
using sched::TreeEntity;

const PolicyEngine::Active& PolicyEngine::in_charge(const TreeEntity& entity,
                                                    uint32_t domain) const {
  const Active& active = in_charge(domain);
  const NestedBubble* at = entity.kind == sched::EntityKind::kBubble
                               ? static_cast<const NestedBubble*>(&entity)
                               : entity.bubble;
  for (; at != nullptr; at = at->bubble) {
    if (const uint8_t number = at->policy.load(std::memory_order_relaxed); number != 0)
      return chosen_[number - 1].active;
    if (at->relation == sched::Relation::kGang) return active.ops == gangs_.ops ? active : gangs_;
  }
  return active;
}

uint8_t PolicyEngine::choose(const PlannedPolicy& policy, topology::Error* error) {
  const topology::Level* whole = machine().level(topology::Kind::kMachine);
  void* state = nullptr;
  // Started before anybody looks: what start() does may take its time, and locks.
  if (policy.ops->start != nullptr &&
      !policy.ops->start({&machine(), whole, nullptr, false, policy.argument, policy.ops, this},
                         &state, error))
    return 0;
  uint32_t number = 0;
  bool added = false;
  {
    base::SpinGuard guard(choosing_);
    const uint32_t count = n_chosen_.load(std::memory_order_relaxed);
    while (number < count && (chosen_[number].active.ops != policy.ops ||
                              strcmp(chosen_[number].argument, policy.argument) != 0))
      ++number;
    if (number == count && count < kMostChosen) {
      Chosen& chosen = chosen_[count];
      chosen.active = {policy.ops, whole, state};
      memcpy(chosen.argument, policy.argument, sizeof chosen.argument);
      // release pairs with the acquire in idle_chosen(). Who reads the number in a bubble has it from
      // there, under the bubble's lock or its queue's.
      n_chosen_.store(count + 1, std::memory_order_release);
      if (policy.ops->gain != nullptr) memory_matters_.store(true, std::memory_order_relaxed);
      added = true;
    }
  }
  if (!added && policy.ops->stop != nullptr) policy.ops->stop(state);
  if (number < kMostChosen) return static_cast<uint8_t>(number + 1);
  error->set("%u policies have been chosen for bubbles already", kMostChosen);
  return 0;
}

bool PolicyEngine::idle_chosen(uint32_t pu) {
  const uint32_t count = n_chosen_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    const Active& active = chosen_[i].active;
    if (active.ops->idle != nullptr && active.ops->idle(active.state, pu)) return true;
  }
  return false;
}

void PolicyEngine::stop_chosen() {
  uint32_t count = n_chosen_.exchange(0, std::memory_order_relaxed);
  while (count-- != 0) {
    const Active& active = chosen_[count].active;
    if (active.ops->stop != nullptr) active.ops->stop(active.state);
  }
}

void PolicyEngine::forget_chosen_after_fork() {
  new (&choosing_) base::SpinLock;
  for (uint32_t i = 0; i < n_chosen_.load(std::memory_order_relaxed); ++i) {
    const Active& active = chosen_[i].active;
    if (active.ops->forked != nullptr) active.ops->forked(active.state);
  }
}

}  // namespace bosk::policies
