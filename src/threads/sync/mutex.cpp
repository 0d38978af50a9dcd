// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutexes and conditions.
#include "threads/sync/mutex.h"

#include <new>

#include "bosk/error.h"
#include "sched/address_wait.h"

namespace bosk::threads {

void Mutex::init(uint32_t kind) {
  new (this) Mutex;
  kind_ = kind;
}

int Mutex::destroy() {
  if (kind_ == kDead) return BOSK_EINVAL;
  // relaxed: who uses it now uses what is being destroyed.
  if (word_.load(std::memory_order_relaxed) != kFree) return BOSK_EBUSY;
  kind_ = kDead;
  return 0;
}

int Mutex::lock_again() {
  if (kind_ != kRecursive) return BOSK_EDEADLK;
  if (depth_ >= INT32_MAX) return BOSK_EAGAIN;
  ++depth_;
  return 0;
}

int Mutex::try_lock() {
  if (BOSK_UNLIKELY(kind_ > kRecursive)) return BOSK_EINVAL;
  if (BOSK_LIKELY(take())) return 0;
  if (kind_ == kRecursive && owner_.is_me()) return lock_again();
  return BOSK_EBUSY;
}

int Mutex::lock(uint64_t deadline) {
  if (BOSK_UNLIKELY(kind_ > kRecursive)) return BOSK_EINVAL;
  if (BOSK_LIKELY(take())) return 0;
  if (owner_.is_me()) return lock_again();
  return wait_for_it(deadline);
}

int Mutex::wait_for_it(uint64_t deadline) {
  be_known();
  // acquire as in take().
  while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
    const sched::WaitEnd end = sched::wait_on_until(word_, kContended, deadline);
    if (BOSK_LIKELY(end == sched::WaitEnd::kWoken)) continue;
    // Once more: no wake-up was spent on this thread, but the mutex may be free.
    if (word_.exchange(kContended, std::memory_order_acquire) == kFree) break;
    return end == sched::WaitEnd::kTimedOut ? BOSK_ETIMEDOUT : BOSK_ENOMEM;
  }
  now_mine(1);
  return 0;
}

void Mutex::give() {
  owner_.clear();
  // release for the next holder; seq_cst because wake_after_rmw() asks for it. After it the mutex may be
  // gone: only its address is used.
  if (BOSK_UNLIKELY(word_.exchange(kFree, std::memory_order_seq_cst) == kContended)) {
    be_known();
    sched::wake_after_rmw(word_, 1);
  }
}

int Mutex::unlock() {
  if (BOSK_UNLIKELY(kind_ > kRecursive)) return BOSK_EINVAL;
  if (BOSK_UNLIKELY(!owner_.is_me())) return BOSK_EPERM;
  if (--depth_ == 0) give();
  return 0;
}

void Condition::init() { new (this) Condition; }

int Condition::destroy() {
  list_.lock();
  const int result = state_ != kAlive ? BOSK_EINVAL : list_.first() != nullptr ? BOSK_EBUSY : 0;
  if (result == 0) state_ = kDead;
  list_.unlock();
  return result;
}

int Condition::wait(Mutex& mutex, uint64_t deadline) {
  if (mutex.kind_ > Mutex::kRecursive) return BOSK_EINVAL;
  if (!mutex.owner_.is_me()) return BOSK_EPERM;
  Waiter me;
  list_.lock();
  const bool alive = state_ == kAlive;
  if (alive) list_.append(&me);
  list_.unlock();
  if (!alive) return BOSK_EINVAL;
  // From here on a signal finds it, so none that comes after the mutex is free is missed.
  const uint32_t depth = mutex.depth_;
  mutex.give();
  const int result = wait_turn(list_, me, deadline);
  if (!mutex.take()) mutex.wait_for_it(kForever);
  mutex.depth_ = depth;
  return result;
}

int Condition::signal() {
  list_.lock();
  const bool alive = state_ == kAlive;
  Waiter* first = list_.first() != nullptr ? list_.grant_first() : nullptr;
  list_.unlock();
  let_go(first);
  return alive ? 0 : BOSK_EINVAL;
}

int Condition::broadcast() {
  list_.lock();
  const bool alive = state_ == kAlive;
  Waiter* all = list_.grant_all();
  list_.unlock();
  let_go(all);
  return alive ? 0 : BOSK_EINVAL;
}

}  // namespace bosk::threads
