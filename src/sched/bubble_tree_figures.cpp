// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known of a nested bubble and all that belongs to it, summed on demand.
#include "sched/bubble_tree.h"
#include "sched/bubble_tree_footprints.h"

namespace bosk::sched {
namespace {

/// Calls enter(entity) for the entity and everything in it, bubbles before their members. Every
/// bubble on the way down is locked meanwhile, so that nothing in it can go away.
template <class Enter>
void walk_locked(TreeEntity& root, Enter&& enter) {
  for (TreeEntity* at = &root;;) {
    NestedBubble* bubble = as_bubble(at);
    if (bubble != nullptr) bubble->lock.lock();
    enter(*at);
    if (bubble != nullptr && bubble->first_member != nullptr) {
      at = bubble->first_member;
      continue;
    }
    if (bubble != nullptr) bubble->lock.unlock();
    while (at != &root && at->next_member == nullptr) {
      at = at->bubble;
      static_cast<NestedBubble*>(at)->lock.unlock();
    }
    if (at == &root) return;
    at = at->next_member;
  }
}

}  // namespace

Summary summarize(TreeEntity& root) {
  Summary sum;
  // A bubble's own load replaces that of its contents, so loads are added up on the way out only
  // for entities that no loaded bubble is around.
  const TreeEntity* told = nullptr;  // the outermost bubble around us that has a load
  walk_locked(root, [&](TreeEntity& entity) {
    if (told != nullptr) {
      const NestedBubble* around = entity.bubble;
      while (around != nullptr && around != told && around != &root) around = around->bubble;
      if (around != told) told = nullptr;
    }
    const uint32_t given = entity.figures.load.load(std::memory_order_relaxed);
    const NestedBubble* bubble = as_bubble(&entity);
    const uint64_t steals = entity.figures.steals.load(std::memory_order_relaxed);
    sum.steals += static_cast<uint32_t>(steals);
    sum.steal_levels += static_cast<uint32_t>(steals >> 32);
    if (bubble != nullptr) {
      ++sum.bubbles;
      const uint32_t ghosts = bubble->ghosts_left();
      sum.ghosts += ghosts;
      if (told == nullptr) sum.load += given != kUnknown32 ? given : ghosts;
      if (told == nullptr && given != kUnknown32) told = &entity;
      return;
    }
    ++sum.threads;
    if (told == nullptr) sum.load += given != kUnknown32 ? given : 1;
    switch (entity.activity.load(std::memory_order_relaxed)) {
      case Activity::kReady:
        ++sum.ready;
        break;
      case Activity::kRunning:
        ++sum.running;
        break;
      case Activity::kBlocked:
        ++sum.blocked;
        break;
    }
    const uint64_t ns = entity.figures.cpu_ns.load(std::memory_order_relaxed);
    if (ns != kUnknown64)
      sum.cpu_ns += ns;
    else
      ++sum.cpu_unknown;
  });
  return sum;
}

void visit(TreeEntity& root, void (*enter)(void* context, TreeEntity& entity), void* context) {
  walk_locked(root, [&](TreeEntity& entity) { enter(context, entity); });
}

uint32_t add_footprint(TreeEntity& root, uint64_t* bytes, uint32_t nodes) {
  uint32_t known = 0;
  walk_locked(root, [&](TreeEntity& entity) {
    // acquire: the array was filled before it was attached.
    const auto* footprint = entity.figures.footprint.load(std::memory_order_acquire);
    if (footprint == nullptr) return;
    ++known;
    for (uint32_t node = 0; node < nodes; ++node)
      bytes[node] += footprint[node].load(std::memory_order_relaxed);
  });
  return known;
}

uint32_t footprints_in(TreeEntity& root, const std::atomic<uint64_t>** footprints, uint32_t room) {
  uint32_t count = 0;
  walk_locked(root, [&](TreeEntity& entity) {
    // acquire: as above.
    const auto* footprint = entity.figures.footprint.load(std::memory_order_acquire);
    if (footprint == nullptr) return;
    if (count < room) footprints[count] = footprint;
    ++count;
  });
  return count;
}

uint64_t total_footprint(TreeEntity& root, uint32_t nodes) {
  uint64_t sum = kUnknown64;
  walk_locked(root, [&](TreeEntity& entity) {
    // acquire: as above.
    const auto* footprint = entity.figures.footprint.load(std::memory_order_acquire);
    if (footprint == nullptr) return;
    if (sum == kUnknown64) sum = 0;
    for (uint32_t node = 0; node < nodes; ++node)
      sum += footprint[node].load(std::memory_order_relaxed);
  });
  return sum;
}

}  // namespace bosk::sched
