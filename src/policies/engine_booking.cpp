// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The load that is expected on each domain, of what was placed on it or below. O(levels).
#include "policies/engine.h"

namespace bosk::policies {

using sched::TreeEntity;
using topology::Domain;

/// On the domain and all around it.
void PolicyEngine::count_load(uint32_t domain, uint64_t load, bool comes) const {
  if (domain >= machine().n_domains) return;
  for (const Domain* d = &machine().domain_array[domain]; d != nullptr; d = d->parent)
    booked_[d->id].fetch_add(comes ? load : -load, std::memory_order_relaxed);
}

void PolicyEngine::book(TreeEntity& entity, uint64_t load, uint32_t domain) {
  unbook(entity);
  entity.booked_load = load;
  std::atomic_ref(entity.booked_domain).store(domain, std::memory_order_relaxed);
  // What was decided on for a thread before is out of date: it may have come back while it was told. Where a policy places
  // it answer_as_decided() has seen to that; a holder lets it out without.
  if (entity.figures.wake_domain.load(std::memory_order_relaxed) != sched::kUnknown32)
    entity.figures.wake_domain.store(sched::kUnknown32, std::memory_order_relaxed);
  // A bubble has no runner that would note it.
  if (entity.kind == sched::EntityKind::kBubble)
    entity.figures.last_domain.store(domain, std::memory_order_relaxed);
  count_load(domain, load, true);
}

void PolicyEngine::unbook(TreeEntity& entity) {
  std::atomic_ref<uint32_t> at(entity.booked_domain);
  if (at.load(std::memory_order_relaxed) == sched::kUnknown32) return;
  count_load(at.exchange(sched::kUnknown32, std::memory_order_relaxed), entity.booked_load, false);
}

/// Of a thread that is in nobody's hand, because it runs, is blocked, or becomes ready just now: what is booked for it goes with it.
/// Its load stays what it is, and who exchanges the domain takes the load off that one; so two who do this at once, or one
/// and the thread's end (unbook()), leave the books as they should be. Relaxed: figures.
void PolicyEngine::move_booking(TreeEntity& thread, uint32_t domain) {
  std::atomic_ref<uint32_t> at(thread.booked_domain);
  uint32_t from = at.load(std::memory_order_relaxed);
  if (from == sched::kUnknown32 || from == domain) return;
  const uint64_t load = thread.booked_load;
  count_load(domain, load, true);
  const bool mine = at.compare_exchange_strong(from, domain, std::memory_order_relaxed);
  count_load(mine ? from : domain, load, false);
}

}  // namespace bosk::policies
