// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Holders of the policies' own: queues that lie on no PU's path, so that no search looks at them.
//
// They are run queues, so that everything that finds an entity on a queue finds it there, too: a
// bubble that closes takes its members back out of them, and remove() takes them off. Only the way
// out is different: nobody takes from them but the policy, by PolicyEngine::release_held().
#pragma once

#include <stdint.h>

#include <atomic>
#include <new>

#include "base/mapped_array.h"
#include "policies/policy.h"
#include "sched/bubble_tree.h"

namespace bosk::policies {

/// Constant-initialised. add() and of() may be called by anybody at any time.
class HolderSet {
 public:
  static constexpr uint32_t kMost = 64;

  /// The number of a new holder, with kHolderBit; kNone: there are kMost, or no memory. `first_rank`:
  /// above those of all other queues.
  uint32_t add(uint32_t first_rank) {
    base::SpinGuard guard(lock_);
    const uint32_t count = count_.load(std::memory_order_relaxed);
    if (count == kMost) return kNone;
    if (queues_ == nullptr) {
      void* memory = base::map_pages(kMost * sizeof(sched::RunQueue));
      if (memory == nullptr) return kNone;
      queues_ = new (memory) sched::RunQueue[kMost];
    }
    queues_[count].rank = uint64_t{first_rank} + count;
    queues_[count].domain = kNone;
    // release pairs with the acquire in of(): who sees the number sees the queue.
    count_.store(count + 1, std::memory_order_release);
    return kHolderBit | count;
  }
  /// Null: there is none of that number.
  sched::RunQueue* of(uint32_t holder) const {
    const uint32_t index = holder & ~kHolderBit;
    if (!is_holder(holder) || index >= count_.load(std::memory_order_acquire)) return nullptr;
    return queues_ + index;
  }
  /// The best entity of the holder, or `only` that one, off it; null: not there.
  static sched::Entity* take(sched::RunQueue& queue, EntityToken only) {
    base::SpinGuard guard(queue.lock);
    sched::Entity* at = queue.first;
    while (at != nullptr && only != nullptr && static_cast<sched::TreeEntity*>(at) != only)
      at = at->next;
    if (at != nullptr) queue.remove_locked(at);
    return at;
  }
  /// Everything that is still held goes to `rest`; nobody calls any more.
  void release(sched::RunQueue& rest) {
    const uint32_t count = count_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i)
      while (sched::Entity* entity = take(queues_[i], nullptr))
        sched::requeue(*static_cast<sched::TreeEntity*>(entity), rest);
    count_.store(0, std::memory_order_relaxed);
    if (queues_ != nullptr) base::unmap_pages(queues_, kMost * sizeof(sched::RunQueue));
    queues_ = nullptr;
  }
  /// What is held is of threads that are not there any more, and locks may be held by such.
  void forget_after_fork() {
    new (&lock_) base::SpinLock;
    for (uint32_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
      const uint64_t rank = queues_[i].rank;
      new (&queues_[i]) sched::RunQueue;
      queues_[i].rank = rank;
      queues_[i].domain = kNone;
    }
  }

 private:
  base::SpinLock lock_;
  sched::RunQueue* queues_ = nullptr;
  std::atomic<uint32_t> count_{0};
};

}  // namespace bosk::policies
