// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The load that is expected on each domain, of what was placed on it or below. O(levels).
#include "policies/engine.h"

namespace bosk::policies {

using sched::TreeEntity;
using topology::Domain;

void PolicyEngine::book(TreeEntity& entity, uint64_t load, uint32_t domain) {
  unbook(entity);
  entity.booked_load = load;
  entity.booked_domain = domain;
  // What was decided on for a thread before, when it was blocked or ran, is out of date: it may have come back while it was told.
  if (entity.figures.wake_domain.load(std::memory_order_relaxed) != sched::kUnknown32)
    entity.figures.wake_domain.store(sched::kUnknown32, std::memory_order_relaxed);
  // A bubble has no runner that would note it.
  if (entity.kind == sched::EntityKind::kBubble)
    entity.figures.last_domain.store(domain, std::memory_order_relaxed);
  for (const Domain* d = &machine().domain_array[domain]; d != nullptr; d = d->parent)
    booked_[d->id].fetch_add(load, std::memory_order_relaxed);
}

void PolicyEngine::unbook(TreeEntity& entity) {
  if (entity.booked_domain == sched::kUnknown32) return;
  for (const Domain* d = &machine().domain_array[entity.booked_domain]; d != nullptr; d = d->parent)
    booked_[d->id].fetch_sub(entity.booked_load, std::memory_order_relaxed);
  entity.booked_load = 0;
  entity.booked_domain = sched::kUnknown32;
}

}  // namespace bosk::policies
