// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Run queues: one per domain of the machine; holders of entities that are ready to run.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "base/spinlock.h"
#include "sched/entity.h"
#include "sched/work_signs.h"

namespace bosk::sched {

constexpr int32_t kNoEntity = INT32_MIN;

/// Something that holds entities. `rank` orders the locks: a smaller rank (higher level of the
/// machine, then smaller index; bubbles below every queue) is taken first.
struct Holder {
  base::SpinLock lock;
  uint64_t rank = 0;
};

/// Entities in order of priority, first come first served within one. Costs: enqueue O(entities of
/// lower priority, in front: higher), which is O(1) when all have the same; take O(1); best O(1) without the lock.
struct alignas(base::kCacheLine) RunQueue : Holder {
  /// Priority of the first entity; kNoEntity when empty. Written under the lock, read without it by
  /// the first pass of the search (relaxed: it is a hint, the second pass looks again under the lock;
  /// a store that is seen late only delays the finder, and whoever enqueued for a sleeping worker
  /// wakes it after a full fence).
  std::atomic<int32_t> best{kNoEntity};
  /// The signs say (or need not say: a queue of no machine) that something may be here. Guarded by lock.
  bool announced = true;
  Entity* first = nullptr;  ///< guarded by lock, like the links of the entities on it
  Entity* last = nullptr;
  std::atomic<uint32_t> length{0};  ///< written under the lock; without it a hint (relaxed)
  uint32_t domain = 0;              ///< index of the domain that it belongs to
  WorkSigns* signs = nullptr;

  bool empty_hint() const { return best.load(std::memory_order_relaxed) == kNoEntity; }

  /// Puts the entity behind all of its priority (front: before them). The caller holds the lock.
  void enqueue_locked(Entity* entity, bool front = false) {
    Entity* after = last;
    if (front) {
      Entity* before = first;
      while (before != nullptr && before->priority > entity->priority) before = before->next;
      if (before != nullptr) after = before->previous;
    } else {
      while (after != nullptr && after->priority < entity->priority) after = after->previous;
    }
    entity->holder = this;
    entity->previous = after;
    entity->next = after != nullptr ? after->next : first;
    if (after != nullptr)
      after->next = entity;
    else
      first = entity;
    if (entity->next != nullptr)
      entity->next->previous = entity;
    else
      last = entity;
    length.store(length.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    best.store(first->priority, std::memory_order_relaxed);
    if (BOSK_UNLIKELY(!announced)) announce_locked();
  }

  void remove_locked(Entity* entity) {
    if (entity->previous != nullptr)
      entity->previous->next = entity->next;
    else
      first = entity->next;
    if (entity->next != nullptr)
      entity->next->previous = entity->previous;
    else
      last = entity->previous;
    entity->holder = nullptr;
    entity->next = entity->previous = nullptr;
    length.store(length.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    best.store(first != nullptr ? first->priority : kNoEntity, std::memory_order_relaxed);
  }

  [[gnu::cold, gnu::noinline]] void announce_locked() {
    announced = true;
    signs->raise_own(domain);
  }
  /// By a searcher who found the queue empty and holds the lock.
  void retract_locked() {
    if (first != nullptr || !announced || signs == nullptr) return;
    announced = false;
    signs->lower_own(domain);
  }

  void enqueue(Entity* entity, bool front = false) {
    base::SpinGuard guard(lock);
    enqueue_locked(entity, front);
  }
};

}  // namespace bosk::sched
