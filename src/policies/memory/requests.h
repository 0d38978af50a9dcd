// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles at whose memory somebody is to look who may take locks and move pages (locality/service.h): each once, and why.
//
// Who owns what: names are in a ring with a lock, which is taken with preemption off, or by a kernel thread that plays no worker.
// "Look at all" is a word of bits, so that it can be said with preemption on. `news` grows with each request, after it (release):
// who serves reads it before he looks (acquire), and sleeps only while it is the same.
#pragma once

#include <stdint.h>

#include <atomic>
#include <new>

#include "base/spinlock.h"
#include "base/syscalls.h"

namespace bosk::policies {

/// Why somebody asks whether threads are still where their memory is (2009 §3.1).
enum class MemoryTrigger : uint8_t {
  kAttached,  ///< memory was attached, detached, allocated, freed or moved
  kIdle,      ///< a PU has nothing to do
  kHint,      ///< the program said so
  kPlaced,    ///< they have just been placed
  kRemote,    ///< counters show accesses to memory far away
};
constexpr uint32_t kMemoryTriggers = 5;
constexpr uint32_t trigger_bit(MemoryTrigger trigger) {
  return 1u << static_cast<unsigned>(trigger);
}

/// Of two reasons to look at the same bubble, the one that has more done: what a program says comes first; and who has just been
/// placed is looked at even where everybody else waits until what was done last has shown.
inline MemoryTrigger more_urgent(MemoryTrigger a, MemoryTrigger b) {
  for (const MemoryTrigger first : {MemoryTrigger::kHint, MemoryTrigger::kPlaced})
    if (a == first || b == first) return first;
  return a;
}

struct MemoryRequest {
  uint64_t name;  ///< of the bubble
  MemoryTrigger trigger;
};

/// First come, first served. A ring that is full loses the request, which is a hint; the next tick of the bubble's threads makes
/// another.
class MemoryRequests {
 public:
  static constexpr uint32_t kRoom = 64;

  /// From now on somebody looks, or nobody does; then nothing is taken in.
  void set_served(bool served) { served_.store(served, std::memory_order_relaxed); }

  /// Somebody is to look at the bubble. With preemption off. True: there is one more. Of a bubble that is in it already there remains
  /// one, for the more urgent reason.
  bool put(uint64_t name, MemoryTrigger trigger) {
    if (!served_.load(std::memory_order_relaxed)) return false;
    {
      base::SpinGuard guard(lock_);
      for (uint32_t i = 0; i < count_; ++i) {
        MemoryRequest& before = ring_[(first_ + i) % kRoom];
        if (before.name != name) continue;
        before.trigger = more_urgent(before.trigger, trigger);
        return false;
      }
      if (count_ == kRoom) return false;
      ring_[(first_ + count_++) % kRoom] = {name, trigger};
    }
    tell();
    return true;
  }
  bool take(MemoryRequest* request) {
    base::SpinGuard guard(lock_);
    if (count_ == 0) return false;
    *request = ring_[first_];
    first_ = (first_ + 1) % kRoom;
    --count_;
    return true;
  }

  /// Somebody is to look at all; kAttached, kIdle or kRemote. With preemption on or off.
  void put_all(MemoryTrigger trigger) {
    if (!served_.load(std::memory_order_relaxed)) return;
    const uint32_t bit = trigger_bit(trigger);
    // release: with what was attached.
    if ((all_.fetch_or(bit, std::memory_order_release) & bit) == 0) tell();
  }
  /// The same by who serves: later, with what others say.
  void put_off(MemoryTrigger trigger) {
    all_.fetch_or(trigger_bit(trigger), std::memory_order_relaxed);
  }
  uint32_t all() const { return all_.load(std::memory_order_relaxed); }
  /// acquire: with what was attached.
  uint32_t take_all() { return all_.exchange(0, std::memory_order_acquire); }

  /// Whoever waits for news wakes up.
  void tell() {
    news_.fetch_add(1, std::memory_order_release);
    base::futex_wake(&news_, 1);
  }
  uint32_t news() const { return news_.load(std::memory_order_acquire); }
  /// Until there are others than `seen`, or the time is over (null: for good).
  void wait(uint32_t seen, const timespec* time) { base::futex_wait(&news_, seen, time); }

  /// In a forked child, whose other threads are gone.
  void forget() {
    new (&lock_) base::SpinLock;
    first_ = count_ = 0;
    served_.store(false, std::memory_order_relaxed);
    all_.store(0, std::memory_order_relaxed);
  }

 private:
  base::SpinLock lock_;  ///< guards the ring
  MemoryRequest ring_[kRoom] = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  std::atomic<bool> served_{false};  ///< relaxed: what comes too early is lost
  std::atomic<uint32_t> all_{0};     ///< bits of triggers
  std::atomic<uint32_t> news_{0};    ///< futex
};

}  // namespace bosk::policies
