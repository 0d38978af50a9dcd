// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// critical and atomic: the two locks.
#include "omp/critical.h"

namespace bosk::omp {

namespace detail {
constinit PaddedLock unnamed_critical_lock;
constinit PaddedLock wide_atomic_lock;
}  // namespace detail

void reset_critical_after_fork() {
  // The child has one thread: relaxed.
  unnamed_critical().store(kLockFree, std::memory_order_relaxed);
  wide_atomic().store(kLockFree, std::memory_order_relaxed);
}

}  // namespace bosk::omp
