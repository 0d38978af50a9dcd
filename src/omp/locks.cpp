// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks: what is not the uncontended case.
#include "omp/locks.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/brief_spin.h"
#include "omp/team.h"
#include "sched/scheduler.h"

namespace bosk::omp {

namespace {

/// Leaves the holder alone for a moment before it looks again, since each look takes the line away: who
/// runs short sections one after the other does a dozen of them in that time. Long sections do not notice.
bool take_soon(LockWord& word) {
  constexpr int kFirstPauses = 3;
  constexpr int kLooks = 100;
  constexpr int kLooksBesideOthers = 12;  // with others ready here, waiting delays these
  for (int i = 0; i < kFirstPauses; ++i) base::cpu_pause();
  for (int look = 0; look < kLooks; ++look) {
    if (word.load(std::memory_order_relaxed) == kLockFree && try_lock(word)) return true;
    if (look == kLooksBesideOthers) {
      const sched::Thread* me = context::self();
      if (me != nullptr && me->worker != nullptr && !me->worker->ready.empty_hint()) return false;
    }
    base::cpu_pause();
  }
  return false;
}

}  // namespace

void lock_contended(LockWord& word) {
  // A pthread that has not used OpenMP before must not become known as anything less than an initial thread.
  if (BOSK_UNLIKELY(context::self() == nullptr)) attach_thread();
  if (spinning_can_help() && take_soon(word)) return;
  // From here on the word says that somebody may wait, whether or not we get the lock at once.
  // acquire as in lock().
  while (word.exchange(kLockContended, std::memory_order_acquire) != kLockFree) {
    sched::wait_on(word, kLockContended);
  }
}

// The owner is read without the lock: relaxed suffices, because only the question "is it me" is
// asked, and only this task itself writes its own address there. A task that ended and whose memory
// is now another task's took its address back before it ended.

void lock(NestLock& nest, const void* task) {
  if (nest.owner.load(std::memory_order_relaxed) != task) {
    lock(nest.word);
    nest.owner.store(task, std::memory_order_relaxed);
    nest.depth = 0;
  }
  ++nest.depth;
}

int try_lock(NestLock& nest, const void* task) {
  if (nest.owner.load(std::memory_order_relaxed) != task) {
    if (!try_lock(nest.word)) return 0;
    nest.owner.store(task, std::memory_order_relaxed);
    nest.depth = 0;
  }
  return ++nest.depth;
}

void unlock(NestLock& nest) {
  // Unsetting a lock that nobody holds is the program's error; it must not make the next holder's
  // depth wrong.
  if (nest.owner.load(std::memory_order_relaxed) == nullptr) return;
  if (--nest.depth > 0) return;
  nest.owner.store(nullptr, std::memory_order_relaxed);
  unlock(nest.word);
}

NestLock* make_nest_lock() {
  void* memory = malloc(sizeof(NestLock));
  if (memory == nullptr) {
    base::die(1, "out of memory: cannot allocate %zu bytes for a nestable lock", sizeof(NestLock));
  }
  return new (memory) NestLock;
}

void free_nest_lock(NestLock* nest) { free(nest); }

}  // namespace bosk::omp
