// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles at whose memory the service thread is to look, each once, and why.
#pragma once

#include <stdint.h>

#include <new>

#include "base/spinlock.h"
#include "policies/engine.h"

namespace bosk::threads {

/// Of two reasons to look at the same bubble, the one that has more done: what a program says comes first; and who has just been
/// placed is looked at even where everybody else waits until what was done last has shown.
inline policies::MemoryTrigger more_urgent(policies::MemoryTrigger a, policies::MemoryTrigger b) {
  using policies::MemoryTrigger;
  for (const MemoryTrigger first : {MemoryTrigger::kHint, MemoryTrigger::kPlaced})
    if (a == first || b == first) return first;
  return a;
}

struct MemoryRequest {
  uint64_t name;  ///< of the bubble
  policies::MemoryTrigger trigger;
};

/// First come, first served. The lock is taken with preemption off only. One that is full loses the request, which is a hint; the
/// next tick of the bubble's threads makes another.
class MemoryRequests {
 public:
  static constexpr uint32_t kRoom = 64;

  /// True: there is one more. Of a bubble that is in it already there remains one, for the more urgent reason.
  bool put(uint64_t name, policies::MemoryTrigger trigger) {
    base::SpinGuard guard(lock_);
    for (uint32_t i = 0; i < count_; ++i) {
      MemoryRequest& before = ring_[(first_ + i) % kRoom];
      if (before.name != name) continue;
      before.trigger = more_urgent(before.trigger, trigger);
      return false;
    }
    if (count_ == kRoom) return false;
    ring_[(first_ + count_++) % kRoom] = {name, trigger};
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
  /// In a forked child, whose other threads are gone.
  void forget() {
    new (&lock_) base::SpinLock;
    first_ = count_ = 0;
  }

 private:
  base::SpinLock lock_;  ///< guards all
  MemoryRequest ring_[kRoom] = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace bosk::threads
