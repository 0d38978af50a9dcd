// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel threads that serve waits (the clock, the poller): made when first needed, no workers.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "context/identity.h"
#include "sched/worker.h"

namespace bosk::sched {

/// One such thread: made by the factory, with the CPUs of the initial thread of whoever needs it first, all
/// signals blocked but glibc's own (set*id waits for every thread). It never attaches itself: to the
/// scheduler it is a kernel thread that plays no worker, and makes threads ready between enter_pool() and
/// leave_pool().
class ServiceThread {
 public:
  /// acquire: what it needs has been prepared.
  bool runs() const { return state_.load(std::memory_order_acquire) == kRuns; }

  /// Sees to it that it runs: `prepare` first makes what it needs (null: nothing), `body` runs until
  /// is_stopping(). 0, or an errno value. Preemption is on.
  int ensure(const Thread* me, int (*prepare)(), void (*body)(ServiceThread&)) {
    return BOSK_LIKELY(runs()) ? 0 : start(me, prepare, body);
  }

  bool is_stopping() const { return state_.load(std::memory_order_acquire) == kStopping; }

  /// Ends it, if it runs, and joins it; `kick` makes its body look at is_stopping(). Nobody needs it, and
  /// nobody can come to need it meanwhile (pause.h). True: it ran.
  bool stop(void (*kick)());

  /// In a forked child: there is no such thread. True: there was one in the parent.
  bool forget_after_fork();

 private:
  enum : uint32_t { kNone, kStarts, kRuns, kStopping };

  int start(const Thread* me, int (*prepare)(), void (*body)(ServiceThread&));
  void give_up(int error);
  static bool main(void* service);
  static void refused(context::DonorRequest* request, context::Identity*);

  std::atomic<uint32_t> state_{kNone};  ///< futex
  std::atomic<int> error_{0};           ///< of the last start that failed
  void (*body_)(ServiceThread&) = nullptr;
  pthread_t pthread_{};
  base::CpuMask cpus_;
  context::DonorRequest request_;
};

}  // namespace bosk::sched
