// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that wait for their turn at one object, first come first served.
//
// Each waits on a word of its own, on its stack, so that an object is not touched any more by those that it has let
// go: it may be destroyed at once. What an object holds, with the list, is guarded by the list's lock.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "context/thread_block.h"
#include "omp/team.h"
#include "sched/clock.h"
#include "sched/services.h"
#include "sched/thread.h"

namespace bosk::threads {

using sched::kForever;

/// Before the scheduler is asked to block or wake anybody: a pthread that it has not met becomes an initial thread
/// of OpenMP, as it does in its first region.
inline void be_known() {
  if (BOSK_UNLIKELY(context::self() == nullptr)) omp::attach_thread();
}

/// Who holds something: a thread of the scheduler, or the explicit thread that it runs (which may be on top of
/// another one), together with its identity, because ghosts of one team may run on one thread one after the other. A pthread that the scheduler has not met has an identity only.
///
/// relaxed throughout: the question is only "is it me?", and nobody else writes my values there.
class Owner {
 public:
  void set_me() {
    thread_.store(running(), std::memory_order_relaxed);
    block_.store(context::thread_block(), std::memory_order_relaxed);
  }
  void clear() {
    block_.store(nullptr, std::memory_order_relaxed);
    thread_.store(nullptr, std::memory_order_relaxed);
  }
  bool is_me() const {
    if (block_.load(std::memory_order_relaxed) != context::thread_block()) return false;
    // Null: it may have become known since.
    const void* thread = thread_.load(std::memory_order_relaxed);
    return thread == nullptr || thread == running();
  }
  void copy(const Owner& other) {
    thread_.store(other.thread_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    block_.store(other.block_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  static const void* running() {
    const sched::Thread* me = context::self();
    return BOSK_UNLIKELY(me != nullptr && me->is_entity()) ? static_cast<const void*>(me->entity)
                                                           : me;
  }

  std::atomic<const void*> thread_{nullptr};
  std::atomic<context::ThreadBlock*> block_{nullptr};
};

struct Waiter {
  Waiter* next = nullptr;
  Waiter* before = nullptr;
  std::atomic<uint32_t> word{0};  ///< 1: go on. Written after `granted`, without the lock
  bool granted = false;           ///< has been taken off the list, and got what it waits for
  bool writes = false;            ///< rwlock
  Owner who;                      ///< rwlock
};

/// Zero bytes are an empty one.
class WaitList {
 public:
  /// With preemption off, for a few instructions. True: the list has been empty since the process began, so
  /// that whatever is counted beside it belongs to threads that are not in this process.
  ///
  /// The word holds the process's generation while it is locked: a lock, and a list, that a forked child has from
  /// its parent name threads that do not exist.
  bool lock() {
    context::preempt_disable();
    const uint32_t generation = sched::process_generation.load(std::memory_order_relaxed);
    uint32_t seen = 0;
    // acquire pairs with the release in unlock().
    if (BOSK_UNLIKELY(!word_.compare_exchange_strong(seen, generation, std::memory_order_acquire,
                                                     std::memory_order_relaxed)))
      lock_contended(generation);
    if (BOSK_LIKELY(generation_ == generation)) return false;
    generation_ = generation;
    first_ = last_ = nullptr;
    return true;
  }
  void unlock() {
    word_.store(0, std::memory_order_release);
    context::preempt_enable();
  }

  // The rest with the lock held.
  Waiter* first() const { return first_; }
  void append(Waiter* waiter) {
    waiter->next = nullptr;
    waiter->before = last_;
    (last_ != nullptr ? last_->next : first_) = waiter;
    last_ = waiter;
  }
  void remove(Waiter* waiter) {
    (waiter->before != nullptr ? waiter->before->next : first_) = waiter->next;
    (waiter->next != nullptr ? waiter->next->before : last_) = waiter->before;
  }
  /// The first one gets what it waits for; to be let go after unlock().
  Waiter* grant_first() {
    Waiter* waiter = first_;
    remove(waiter);
    waiter->next = nullptr;
    waiter->granted = true;
    return waiter;
  }
  /// All of them, linked by next.
  Waiter* grant_all() {
    Waiter* all = first_;
    for (Waiter* waiter = all; waiter != nullptr; waiter = waiter->next) waiter->granted = true;
    first_ = last_ = nullptr;
    return all;
  }

 private:
  void lock_contended(uint32_t generation);

  std::atomic<uint32_t> word_{0};
  uint32_t generation_ = 0;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

/// Without the lock: those that were granted, linked by next, go on, and their records with them.
void let_go(Waiter* granted);

/// Without the lock, which was held when `me` was appended: 0 when it was granted; BOSK_ETIMEDOUT, or
/// BOSK_ENOMEM if there can be no clock: it has been taken off the list, under the lock, and is_off() called.
int wait_turn(WaitList& list, Waiter& me, uint64_t deadline, void (*is_off)(void*) = nullptr,
              void* argument = nullptr);

}  // namespace bosk::threads
