// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work-stealing deque: its owner works at the bottom, thieves take from the top.
//
// After Chase and Lev, "Dynamic circular work-stealing deque" (SPAA 2005), with two additions: an
// item can be looked at before it is taken (pop_if, steal_if), and nothing that a thief may read is
// ever freed while the deque lives.
//
// Why it is right. `top` only grows, and each item leaves either by the owner, who has lowered
// `bottom` below it, or by a compare-and-swap of `top` from its index. The owner stores `bottom`
// and then loads `top`; a thief loads `top` and then `bottom`; all four are seq_cst, so at least
// one of them sees the other's claim to the last item, and only the compare-and-swap decides it. A
// thief's look at an item before its compare-and-swap is a guess about memory that may have been
// recycled; a successful compare-and-swap proves that the item was there all the time.
// tests/model/deque_test.cpp runs this code under the checker.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <new>

#include "base/cpu.h"

namespace bosk::sched {

/// `A` gives the atomics (base::StdAtomics, or a model checker's). Items are pointers to memory
/// that stays readable as T for ever, as far as the predicate reads it.
template <class A, class T>
class TaskDeque {
  template <typename V>
  using Atomic = typename A::template atomic<V>;

  /// A ring of slots. Rings that were outgrown are kept: a slow thief may still read them.
  struct Ring {
    Ring* outgrown;
    int64_t mask;
    Atomic<T*>* slots;

    Atomic<T*>& slot(int64_t index) { return slots[index & mask]; }
  };

 public:
  static constexpr int64_t kFirstCapacity = 64;

  TaskDeque() = default;
  TaskDeque(const TaskDeque&) = delete;
  TaskDeque& operator=(const TaskDeque&) = delete;
  ~TaskDeque() {
    while (own_ring_ != nullptr) {
      Ring* next = own_ring_->outgrown;
      free(own_ring_);
      own_ring_ = next;
    }
  }

  /// Owner only. False: there is no memory for a larger ring; the item is not in the deque.
  bool push(T* item, int64_t first_capacity = kFirstCapacity) {
    const int64_t b = bottom_.load(std::memory_order_relaxed);
    Ring* ring = own_ring_;
    if (BOSK_UNLIKELY(ring == nullptr || b - known_top_ > ring->mask)) {
      // acquire, with the release of a thief's step: its read of the slot that is reused now comes
      // before the slot is written.
      known_top_ = top_.load(std::memory_order_acquire);
      if (ring == nullptr || b - known_top_ > ring->mask) {
        ring = grow(ring, b, first_capacity);
        if (ring == nullptr) return false;
      }
    }
    ring->slot(b).store(item, std::memory_order_relaxed);
    // release: a thief that sees the new bottom sees the item, what it points to, and the ring.
    bottom_.store(b + 1, std::memory_order_release);
    return true;
  }

  /// Owner only: takes the item that was pushed last. Null: none.
  T* pop() {
    return pop_if([](T*) { return true; });
  }

  /// Owner only: as pop(), if allowed(item). Null: none, or not allowed.
  template <class Allowed>
  T* pop_if(Allowed allowed) {
    const int64_t b = bottom_.load(std::memory_order_relaxed) - 1;
    // relaxed: an old top is too low, never too high, so "empty" is sure.
    if (b < top_.load(std::memory_order_relaxed)) return nullptr;
    T* item = own_ring_->slot(b).load(std::memory_order_relaxed);
    if (!allowed(item)) return nullptr;
    bottom_.store(b, std::memory_order_seq_cst);
    int64_t t = top_.load(std::memory_order_seq_cst);
    if (BOSK_LIKELY(t < b)) return item;  // no thief can have reached it: see the head of the file
    if (t > b) item = nullptr;
    // relaxed: what the owner takes it has pushed itself.
    if (t == b && !top_.compare_exchange_strong(t, t + 1, std::memory_order_relaxed,
                                                std::memory_order_relaxed))
      item = nullptr;
    // release: a thief with an old top may look at the ring and at the item before it fails.
    bottom_.store(b + 1, std::memory_order_release);
    return item;
  }

  /// Anybody: takes the oldest item if allowed(item). Null: none, or not allowed.
  template <class Allowed>
  T* steal_if(Allowed allowed) {
    for (;;) {
      int64_t t = top_.load(std::memory_order_seq_cst);
      if (t >= bottom_.load(std::memory_order_seq_cst)) return nullptr;
      T* item = ring_.load(std::memory_order_acquire)->slot(t).load(std::memory_order_relaxed);
      // Null: a new ring into which an index that is gone by now was never copied.
      if (item != nullptr && !allowed(item)) return nullptr;
      // release: see push(). The item's contents came with the bottom.
      if (item != nullptr && top_.compare_exchange_strong(t, t + 1, std::memory_order_release,
                                                          std::memory_order_relaxed))
        return item;
    }
  }

  /// Anybody: a guess; for the owner never less than what is there.
  int64_t size_hint() const {
    const int64_t b = bottom_.load(std::memory_order_relaxed);
    const int64_t size = b - top_.load(std::memory_order_relaxed);
    return size > 0 ? size : 0;
  }

  /// Owner only: as size_hint(), perhaps much more, without touching what thieves write.
  int64_t size_bound() const { return bottom_.load(std::memory_order_relaxed) - known_top_; }
  /// Owner only: makes size_bound() exact for now.
  int64_t refresh_size() {
    known_top_ = top_.load(std::memory_order_acquire);
    return size_bound();
  }

 private:
  Ring* grow(Ring* old, int64_t b, int64_t first_capacity) {
    const int64_t capacity = old == nullptr ? first_capacity : 2 * (old->mask + 1);
    const size_t bytes = sizeof(Ring) + static_cast<size_t>(capacity) * sizeof(Atomic<T*>);
    auto* ring = static_cast<Ring*>(malloc(bytes));
    if (ring == nullptr) return nullptr;
    ring->outgrown = old;
    ring->mask = capacity - 1;
    ring->slots = reinterpret_cast<Atomic<T*>*>(ring + 1);
    for (int64_t i = 0; i < capacity; ++i) new (&ring->slots[i]) Atomic<T*>(nullptr);
    for (int64_t i = known_top_; i < b; ++i)
      ring->slot(i).store(old->slot(i).load(std::memory_order_relaxed), std::memory_order_relaxed);
    // release: a thief that sees the ring sees its slots.
    ring_.store(ring, std::memory_order_release);
    own_ring_ = ring;
    return ring;
  }

  // Thieves write the top, the owner the bottom.
  alignas(base::kCacheLine) Atomic<int64_t> top_{0};
  alignas(base::kCacheLine) Atomic<int64_t> bottom_{0};
  Atomic<Ring*> ring_{nullptr};
  Ring* own_ring_ = nullptr;  ///< owner's copy of ring_
  int64_t known_top_ = 0;     ///< owner's copy of a former top
};

}  // namespace bosk::sched
