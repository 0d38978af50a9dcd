// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutexes and conditions of bosk/sync.h. Results are its codes.
#pragma once

#include <stdint.h>

#include <atomic>

#include "threads/sync/wait_list.h"

namespace bosk::threads {

/// The word: 0 free, 1 held, 2 held and perhaps waited for. Who waits has written 2, and so does whoever
/// takes the mutex after it has waited, because others may wait still; so one wake-up is enough, and who gives up
/// waiting leaves the 2 behind, which costs a wake-up in vain.
class Mutex {
 public:
  void init(uint32_t kind);
  int destroy();
  int lock(uint64_t deadline);
  int try_lock();
  int unlock();
  static bool is_kind(int kind) { return kind == kPlain || kind == kRecursive; }

 private:
  friend class Condition;
  enum : uint32_t { kFree, kHeld, kContended };
  enum : uint32_t { kPlain, kRecursive, kDead = 0xdead };

  bool take() {
    uint32_t seen = kFree;
    // acquire pairs with the release in give(): the holder sees what the last one wrote.
    if (!word_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire,
                                       std::memory_order_relaxed))
      return false;
    now_mine(1);
    return true;
  }
  void now_mine(uint32_t depth) {
    owner_.set_me();
    depth_ = depth;
  }
  int lock_again();
  int wait_for_it(uint64_t deadline);
  void give();

  std::atomic<uint32_t> word_{kFree};
  uint32_t depth_ = 0;  ///< the owner's
  uint32_t kind_ = kPlain;
  Owner owner_;
};

class Condition {
 public:
  void init();
  int destroy();
  int wait(Mutex& mutex, uint64_t deadline);
  int signal();
  int broadcast();

 private:
  enum : uint32_t { kAlive, kDead = 0xdead };
  WaitList list_;
  uint32_t state_ = kAlive;
};

}  // namespace bosk::threads
