// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a PU without work takes from the queues of others, by a policy's StealRule.
//
//     machine            [ ]               PU 1 is idle. Its own path (pu 1, core 0, node 0, machine)
//     node        [ ]          [3rd C]     is empty, or the search would have found something. Then
//     core     ( )   (2nd B)  ( )   ( )    rings: what is below core 0, below node 0, below the
//     pu     1st A 1 ...                   machine, without what the ring before covered
//
// A ring is looked through level by level, highest domains first: their queues hold the largest
// bubbles. Domains of one level that lie in one domain are adjacent, so a ring is a few ranges of
// numbers; each starts behind the thief's own part, so that not all thieves come to the same victim.
//
// What is taken is off its queue under that queue's lock and nobody else's then, exactly like what a
// search has found; requeue() puts it on the thief's side, or back into its bubble if that has begun
// to close meanwhile. Bubbles that have burst and serve ghosts stay where they are.
//
// Cost: one load for each domain of the rings up to the victim's; kLooks entities at each queue that
// is not empty.
#include <algorithm>

#include "policies/engine.h"
#include "policies/relations.h"

namespace bosk::policies {

using sched::NestedBubble;
using sched::RunQueue;
using sched::TreeEntity;
using topology::Domain;

namespace {

/// Entities that are looked at on one queue while its lock is held.
constexpr uint32_t kLooks = 16;

/// Domains first … last, all of one depth.
struct Ids {
  uint32_t first;
  uint32_t last;

  /// To all their children. False: there are none, and nothing was done.
  bool go_down(const Domain* all) {
    uint32_t with_first = first;
    uint32_t with_last = last;
    while (with_first <= last && all[with_first].is_pu()) ++with_first;
    if (with_first > last) return false;
    while (all[with_last].is_pu()) --with_last;
    const Domain& end = all[with_last];
    *this = {all[with_first].first_child->id, end.first_child->id + end.n_children - 1};
    return true;
  }
};

uint64_t work_of(NestedBubble& bubble) {
  // relaxed: figures.
  const uint32_t told = bubble.figures.load.load(std::memory_order_relaxed);
  if (told != sched::kUnknown32) return load_of(told);
  base::SpinGuard guard(bubble.lock);
  if (bubble.booked_domain != sched::kUnknown32) return bubble.booked_load;
  return (uint64_t{bubble.member_count} + bubble.ghosts_left()) * kLoadUnit;
}

uint32_t width_of(NestedBubble& bubble) {
  base::SpinGuard guard(bubble.lock);
  return bubble.member_count + bubble.ghosts_left();
}

/// May the PU take what is queued on `domain`, as far as the open bubbles around it go? The caller holds
/// the queue's lock, so that these bubbles, which have burst, cannot end; they are locked one by one,
/// after the queue, as the order of locks wants it.
bool may_leave(const TreeEntity& entity, const topology::Machine& machine, const Domain& domain,
               uint32_t pu) {
  for (NestedBubble* around = entity.bubble; around != nullptr;) {
    base::SpinGuard guard(around->lock);
    switch (around->relation) {
      case sched::Relation::kNone:
        break;
      case sched::Relation::kGang:
        return false;
      case sched::Relation::kMemoryBesideCompute: {
        const topology::Level& cores = *machine.level(topology::Kind::kCore);
        if (cores.of_pu[domain.first_pu] != cores.of_pu[pu]) return false;
        break;
      }
      default:
        if (around->burst_on != nullptr &&
            !machine.domain_array[around->burst_on->domain].contains_pu(pu))
          return false;
    }
    around = around->bubble;
  }
  return true;
}

/// Of the entity, or else of what is around it, whose contents use it as well; the caller holds the queue's lock, as above.
/// Of memory that is on its way by next-touch nobody has any yet: whoever moves now would scatter it.
bool stays_by_memory(const TreeEntity& entity, uint32_t nodes, uint32_t here, uint32_t there,
                     const StealRule& rule) {
  bool any = false;
  for (const TreeEntity* e = &entity; e != nullptr; e = e->bubble) {
    // acquire: the array was filled before it was attached. relaxed: figures.
    const auto* bytes = e->figures.footprint.load(std::memory_order_acquire);
    if (bytes == nullptr) continue;
    any = true;
    uint64_t all = 0;
    for (uint32_t node = 0; node < nodes; ++node)
      all += bytes[node].load(std::memory_order_relaxed);
    if (all != 0)
      return rule.memory_comes || bytes[here].load(std::memory_order_relaxed) >=
                                      bytes[there].load(std::memory_order_relaxed);
  }
  return any;
}

}  // namespace

/// Is what is queued on the domain to stay there, for its memory's sake? See StealRule::keeps_percent.
bool PolicyEngine::keeps_memory(const Domain& from, uint32_t pu, const StealRule& rule,
                                uint32_t* here, uint32_t* there) const {
  const topology::Machine& m = machine();
  *here = m.node_of_pu(from.first_pu);
  *there = m.node_of_pu(pu);
  if (*here == *there || *here != m.node_of_pu(from.last_pu)) return false;
  const topology::Level& nodes = *m.level(topology::Kind::kNode);
  const Domain& victim = m.domain_array[nodes.of_pu[from.first_pu]];
  const Domain& thief = m.domain_array[nodes.of_pu[pu]];
  const uint64_t crowd = booked(victim.id);
  return crowd <= victim.n_pus() * kLoadUnit ||
         crowd * thief.n_pus() * 100 <= booked(thief.id) * victim.n_pus() * rule.keeps_percent;
}

TreeEntity* PolicyEngine::take_from(RunQueue& queue, uint32_t pu, const StealRule& rule,
                                    bool bubbles) const {
  const Domain& from = machine().domain_array[queue.domain];
  uint32_t here = 0;
  uint32_t there = 0;
  const bool keeps = rule.keeps_percent != 0 && keeps_memory(from, pu, rule, &here, &there);
  base::SpinGuard guard(queue.lock);
  uint32_t looks = kLooks;
  for (sched::Entity* at = queue.first; at != nullptr && looks != 0; at = at->next, --looks) {
    auto& entity = static_cast<TreeEntity&>(*at);
    NestedBubble* bubble = sched::as_bubble(&entity);
    if (bubble != nullptr && bubble->serving) continue;
    if (bubbles && (bubble == nullptr || work_of(*bubble) < rule.enough)) continue;
    if (!may_leave(entity, machine(), from, pu) || !may_be_taken_by(entity, pu)) continue;
    if (keeps && stays_by_memory(entity, machine().n_nodes, here, there, rule)) continue;
    queue.remove_locked(&entity);
    return &entity;
  }
  return nullptr;
}

/// The PU takes the entity, which is in the caller's hand, from elsewhere; `common` is around both.
void PolicyEngine::note_steal(TreeEntity& entity, uint32_t pu, const Domain& common) {
  // relaxed: counts for reports.
  const uint64_t levels = machine().pu(pu).depth - common.depth;
  steals_.fetch_add(1, std::memory_order_relaxed);
  steal_levels_.fetch_add(levels, std::memory_order_relaxed);
  steals_within_[std::min<uint32_t>(common.depth, kStealDepths - 1)].fetch_add(
      1, std::memory_order_relaxed);
  entity.figures.steals.fetch_add(levels << 32 | 1, std::memory_order_relaxed);
}

/// From the queues below `ring`, but for those below `seen`, which holds the PU: `bubbles` with enough
/// work, and if there are none, `any`.
bool PolicyEngine::steal_around(const Domain& ring, const Domain& seen, uint32_t pu,
                                const StealRule& rule, bool bubbles, bool any) {
  const Domain* all = machine().domain_array;
  TreeEntity* taken = nullptr;
  bool all_empty = true;
  const auto look = [&](uint32_t domain, bool wants_bubbles) {
    RunQueue& queue = queues_->of(domain);
    if (queue.empty_hint()) return false;
    all_empty = false;
    taken = take_from(queue, pu, rule, wants_bubbles);
    return taken != nullptr;
  };
  for (const bool pass : {true, false}) {
    if (pass ? !bubbles : !any) continue;
    Ids ids{ring.id, ring.id};
    Ids own{seen.id, seen.id};
    bool own_is_there = true;
    while (taken == nullptr && ids.go_down(all)) {
      const uint8_t depth = all[ids.first].depth;
      if (depth > seen.depth && own_is_there) own_is_there = own.go_down(all);
      const bool skip = own_is_there && depth >= seen.depth;
      const uint32_t behind = skip ? own.last + 1 : ids.first;
      const uint32_t before = skip ? own.first : ids.first;
      for (uint32_t d = behind; d <= ids.last && !look(d, pass); ++d) {
      }
      for (uint32_t d = ids.first; taken == nullptr && d < before && !look(d, pass); ++d) {
      }
    }
    if (taken != nullptr || all_empty) break;
  }
  if (taken == nullptr) return false;

  const Domain* to = &machine().pu(pu);
  if (NestedBubble* bubble = sched::as_bubble(taken);
      bubble != nullptr && (!rule.to_pu || bubble->relation != sched::Relation::kNone)) {
    const uint32_t width = width_of(*bubble);
    const bool smt = bubble->relation == sched::Relation::kSmtSymbiosis;
    const Domain& core = all[machine().level(topology::Kind::kCore)->of_pu[pu]];
    if (smt && core.depth >= seen.depth) to = &core;
    while (to->depth > seen.depth && to->n_pus() < width) to = to->parent;
  }
  note_steal(*taken, pu, ring);
  bring(*taken, *to);
  return true;
}

/// What was taken off its queue goes to that domain's, or back into its bubble: false.
bool PolicyEngine::bring(TreeEntity& taken, const Domain& to) {
  if (taken.booked_domain != sched::kUnknown32) book(taken, taken.booked_load, to.id);
  RunQueue* at = sched::requeue(taken, queues_->of(to.id));
  if (at != nullptr) announce(at->domain, 1);
  return at == &queues_->of(to.id);
}

bool PolicyEngine::rescue(uint32_t pu, bool (*attended)(void* context, const Domain& domain),
                          void* context, bool look) {
  for (uint32_t d = 0; d < machine().n_domains; ++d) {
    RunQueue& queue = queues_->of(d);
    const Domain* at = &machine().domain_array[d];
    if (queue.empty_hint() || at->contains_pu(pu) || attended(context, *at)) continue;
    TreeEntity* taken = nullptr;
    {
      base::SpinGuard guard(queue.lock);
      for (sched::Entity* e = queue.first; e != nullptr && taken == nullptr; e = e->next) {
        const NestedBubble* bubble = sched::as_bubble(static_cast<TreeEntity*>(e));
        if (bubble == nullptr || !bubble->serving) taken = static_cast<TreeEntity*>(e);
      }
      if (taken != nullptr && !look) queue.remove_locked(taken);
    }
    if (taken == nullptr) continue;
    if (look) return true;
    while (!at->contains_pu(pu)) at = at->parent;
    note_steal(*taken, pu, *at);
    // A bubble opens here: higher up the policy may send it back to where nobody comes for it.
    if (sched::as_bubble(taken) != nullptr) at = &machine().pu(pu);
    if (bring(*taken, *at)) return true;
  }
  return false;
}

bool PolicyEngine::steal_within(const Domain& scope, const Domain& seen, uint32_t pu,
                                const StealRule& rule, bool any) {
  const bool bubbles = !rule.far_bubbles_first || !any;
  for (const Domain* at = &seen; at->depth > scope.depth; at = at->parent)
    if (steal_around(*at->parent, *at, pu, rule, bubbles, any)) return true;
  return false;
}

bool PolicyEngine::steal(uint32_t pu) {
  const Domain* seen = &machine().pu(pu);
  for (uint32_t i = n_active_; i-- > 0;) {
    const Active& active = active_[i];
    const Domain& scope =
        i == 0 ? machine().root() : machine().domain_array[active.level->of_pu[pu]];
    if (scope.depth >= seen->depth) continue;
    StealRule rule;
    if (active.ops->steal != nullptr && active.ops->steal(active.state, pu, &rule) &&
        ((rule.far_bubbles_first && steal_within(scope, *seen, pu, rule, false)) ||
         steal_within(scope, *seen, pu, rule, true)))
      return true;
    seen = &scope;
  }
  return false;
}

}  // namespace bosk::policies
