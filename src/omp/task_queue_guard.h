// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Holding a spin lock: with preemption off, so that no thread waits for a suspended holder.
#pragma once

#include "base/spinlock.h"
#include "context/thread_block.h"

namespace bosk::omp {

/// A lock that is held with preemption off.
class QuietGuard {
 public:
  explicit QuietGuard(base::SpinLock& lock) : block_(context::thread_block()), lock_(lock) {
    context::preempt_disable(block_);
    lock_.lock();
  }
  ~QuietGuard() {
    lock_.unlock();
    context::preempt_enable(block_);
  }
  QuietGuard(const QuietGuard&) = delete;
  QuietGuard& operator=(const QuietGuard&) = delete;

 private:
  context::ThreadBlock* block_;
  base::SpinLock& lock_;
};

}  // namespace bosk::omp
