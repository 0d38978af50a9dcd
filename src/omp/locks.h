// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks: the lock word under critical, atomic and omp_lock_t, and the nestable lock.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "sched/address_wait.h"

namespace bosk::omp {

/// 0 free, 1 held, 2 held and perhaps waited for. Any 4 zero bytes are a free lock.
using LockWord = std::atomic<uint32_t>;
static_assert(sizeof(LockWord) == 4);

enum : uint32_t { kLockFree = 0, kLockHeld = 1, kLockContended = 2 };

void lock_contended(LockWord& word);

inline void lock(LockWord& word) {
  uint32_t seen = kLockFree;
  // acquire pairs with the release of unlock(): the holder sees what the last one wrote.
  if (BOSK_LIKELY(word.compare_exchange_strong(seen, kLockHeld, std::memory_order_acquire,
                                               std::memory_order_relaxed))) {
    return;
  }
  lock_contended(word);
}

inline bool try_lock(LockWord& word) {
  uint32_t seen = kLockFree;
  return word.compare_exchange_strong(seen, kLockHeld, std::memory_order_acquire,
                                      std::memory_order_relaxed);
}

/// Nobody waits unless the word was kLockContended: a thread blocks only after it wrote that, and
/// whoever takes the lock after having waited writes it again, because others may wait still. So the
/// exchange tells whether a wake-up is needed, and one is enough: the thread that it wakes leaves
/// kLockContended behind. The word is not touched after the exchange (the next holder may free it).
inline void unlock(LockWord& word) {
  // release for the next holder; seq_cst because wake_after_rmw() asks for it (the same instruction
  // on x86-64).
  if (BOSK_UNLIKELY(word.exchange(kLockFree, std::memory_order_seq_cst) == kLockContended)) {
    sched::wake_after_rmw(word, 1);
  }
}

/// omp_nest_lock_t of GCC's omp.h, 16 bytes. Zero bytes are a free one. Owned by a task.
struct NestLock {
  LockWord word{kLockFree};
  int32_t depth = 0;  ///< the owner's
  std::atomic<const void*> owner{nullptr};
};
static_assert(sizeof(NestLock) == 16);

void lock(NestLock& nest, const void* task);
void unlock(NestLock& nest);
/// The new nesting depth; 0: another task has the lock.
int try_lock(NestLock& nest, const void* task);

/// For variables that are too small to hold a NestLock and hold a pointer to one instead.
NestLock* make_nest_lock();
void free_nest_lock(NestLock* nest);

}  // namespace bosk::omp
