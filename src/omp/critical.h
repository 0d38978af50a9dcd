// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// critical and atomic: locks of the process.
#pragma once

#include "omp/locks.h"

namespace bosk::omp {

namespace detail {
/// Each alone on its line: critical constructs often contain atomics.
struct alignas(base::kCacheLine) PaddedLock {
  LockWord word{kLockFree};
};
extern constinit PaddedLock unnamed_critical_lock;
extern constinit PaddedLock wide_atomic_lock;
}  // namespace detail

/// The lock of all unnamed critical constructs.
inline LockWord& unnamed_critical() { return detail::unnamed_critical_lock.word; }

/// The lock of the atomics that the hardware does not have. One for the whole process, because the
/// same variable may be updated from any region; held for a few instructions of compiled code.
inline LockWord& wide_atomic() { return detail::wide_atomic_lock.word; }

/// The lock of a named critical construct: the compiler gives it 8 zero bytes, shared by all objects
/// of the program that use the name. The first 4 are the lock.
inline LockWord& named_critical(void** name) { return *reinterpret_cast<LockWord*>(name); }

/// In a forked child: the threads that held these locks are not there any more. If the forking thread
/// itself held one, its unlock finds the lock free, which does no harm: the child has no other thread.
void reset_critical_after_fork();

}  // namespace bosk::omp
