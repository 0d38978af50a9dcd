// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers, semaphores, read-write locks and once.
#include "threads/sync/counters.h"

#include <new>

#include "base/syscalls.h"
#include "bosk/error.h"
#include "sched/address_wait.h"

namespace bosk::threads {

void Barrier::init(uint32_t count) {
  new (this) Barrier;
  count_ = count;
}

int Barrier::destroy() {
  list_.lock();
  const int result = count_ == 0 ? BOSK_EINVAL : list_.first() != nullptr ? BOSK_EBUSY : 0;
  if (result == 0) count_ = 0;
  list_.unlock();
  return result;
}

int Barrier::wait() {
  Waiter me;
  // In a forked child those that had arrived are not there.
  if (list_.lock()) arrived_ = 0;
  if (count_ == 0) {
    list_.unlock();
    return BOSK_EINVAL;
  }
  if (++arrived_ == count_) {
    arrived_ = 0;
    Waiter* all = list_.grant_all();
    list_.unlock();
    let_go(all);
    return 1;
  }
  list_.append(&me);
  list_.unlock();
  return wait_turn(list_, me, kForever);
}

void Semaphore::init(uint32_t value) {
  new (this) Semaphore;
  value_ = value;
  state_ = kAlive;
}

int Semaphore::destroy() {
  list_.lock();
  const int result = state_ != kAlive ? BOSK_EINVAL : list_.first() != nullptr ? BOSK_EBUSY : 0;
  if (result == 0) state_ = 0;
  list_.unlock();
  return result;
}

int Semaphore::wait(uint64_t deadline) {
  Waiter me;
  list_.lock();
  const bool alive = state_ == kAlive;
  const bool at_once = value_ != 0;
  if (alive && at_once)
    --value_;
  else if (alive)
    list_.append(&me);
  list_.unlock();
  if (!alive) return BOSK_EINVAL;
  return at_once ? 0 : wait_turn(list_, me, deadline);
}

int Semaphore::try_wait() {
  list_.lock();
  const int result = state_ != kAlive ? BOSK_EINVAL : value_ == 0 ? BOSK_EBUSY : 0;
  if (result == 0) --value_;
  list_.unlock();
  return result;
}

int Semaphore::post() {
  Waiter* first = nullptr;
  int result = 0;
  list_.lock();
  if (state_ != kAlive)
    result = BOSK_EINVAL;
  else if (list_.first() != nullptr)
    first = list_.grant_first();
  else if (value_ == INT32_MAX)
    result = BOSK_EAGAIN;
  else
    ++value_;
  list_.unlock();
  let_go(first);
  return result;
}

int Semaphore::value(uint32_t* value) {
  list_.lock();
  const bool alive = state_ == kAlive;
  if (alive) *value = value_;
  list_.unlock();
  return alive ? 0 : BOSK_EINVAL;
}

void ReadWriteLock::init() { new (this) ReadWriteLock; }

int ReadWriteLock::destroy() {
  list_.lock();
  const int result = state_ == kDead                           ? BOSK_EINVAL
                     : users_ != 0 || list_.first() != nullptr ? BOSK_EBUSY
                                                               : 0;
  if (result == 0) state_ = kDead;
  list_.unlock();
  return result;
}

/// With the lock held: those at the front that may have it now get it; to be let go.
Waiter* ReadWriteLock::hand_over() {
  Waiter* granted = nullptr;
  Waiter** last = &granted;
  while (Waiter* first = list_.first()) {
    if (users_ < 0 || (first->writes && users_ != 0)) break;
    if (first->writes) {
      users_ = -1;
      writer_.copy(first->who);
    } else {
      ++users_;
    }
    *last = list_.grant_first();
    last = &(*last)->next;
  }
  return granted;
}

int ReadWriteLock::enter(bool writes, bool may_wait, uint64_t deadline) {
  Waiter me;
  me.writes = writes;
  me.who.set_me();
  list_.lock();
  int result = 0;
  bool waits = false;
  if (state_ == kDead) {
    result = BOSK_EINVAL;
  } else if (users_ < 0 && writer_.is_me()) {
    result = may_wait ? BOSK_EDEADLK : BOSK_EBUSY;
  } else if (!writes && users_ == INT32_MAX) {
    result = BOSK_EAGAIN;
  } else if (list_.first() == nullptr && (writes ? users_ == 0 : users_ >= 0)) {
    users_ = writes ? -1 : users_ + 1;
    if (writes) writer_.set_me();
  } else if (!may_wait) {
    result = BOSK_EBUSY;
  } else {
    list_.append(&me);
    waits = true;
  }
  list_.unlock();
  if (!waits) return result;
  // A writer that gives up may have been all that kept readers waiting.
  struct Leave {
    ReadWriteLock* lock;
    Waiter* granted;
  } leave{this, nullptr};
  result = wait_turn(
      list_, me, deadline,
      [](void* argument) {
        auto* left = static_cast<Leave*>(argument);
        left->granted = left->lock->hand_over();
      },
      &leave);
  let_go(leave.granted);
  return result;
}

int ReadWriteLock::unlock() {
  Waiter* granted = nullptr;
  int result = 0;
  list_.lock();
  if (state_ == kDead) {
    result = BOSK_EINVAL;
  } else if (users_ == 0 || (users_ < 0 && !writer_.is_me())) {
    result = BOSK_EPERM;
  } else {
    if (users_ < 0) writer_.clear();
    users_ = users_ < 0 ? 0 : users_ - 1;
    granted = hand_over();
  }
  list_.unlock();
  let_go(granted);
  return result;
}

int Once::call(void (*function)()) {
  // acquire: what the function did.
  uint32_t seen = state_.load(std::memory_order_acquire);
  if (BOSK_LIKELY(seen == kDone)) return 0;
  // Processes have at most 22 bits. Not the scheduler's generation, which counts from its first use only.
  const uint32_t here = static_cast<uint32_t>(base::raw_syscall(SYS_getpid)) * kPhases;
  const uint32_t runs = here | kRuns;
  const uint32_t awaited = here | kAwaited;
  while (seen != runs && seen != awaited && seen != kDone) {
    // Not yet, or it ran in another process.
    if (!state_.compare_exchange_strong(seen, runs, std::memory_order_acquire)) continue;
    runner_.set_me();
    function();
    runner_.clear();
    // release for those that find it done; seq_cst because wake_after_rmw() asks for it.
    if (state_.exchange(kDone, std::memory_order_seq_cst) == awaited) {
      be_known();
      sched::wake_after_rmw(state_, UINT32_MAX);
    }
    return 0;
  }
  if (seen != kDone && runner_.is_me()) return BOSK_EDEADLK;
  be_known();
  while (seen != kDone) {
    if (seen == runs && !state_.compare_exchange_strong(seen, awaited, std::memory_order_acquire))
      continue;
    sched::wait_on(state_, awaited);
    seen = state_.load(std::memory_order_acquire);
  }
  return 0;
}

}  // namespace bosk::threads
