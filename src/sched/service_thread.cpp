// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel threads that serve waits: how they begin and end.
//
// state_ is the whole protocol. kNone → kStarts by a compare-exchange: whoever did it owns the fields below
// until kRuns or kNone, stored with release. kRuns → kStopping → kNone by the only thread that is not kept
// out by a pause, or in a forked child. Everybody else sleeps on it while it is kStarts or kStopping.
#include "sched/service_thread.h"

#include <limits.h>

#include <new>

#include "base/short_slices.h"
#include "base/syscalls.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

/// What service bodies need, with room for whatever handler glibc runs on them.
constexpr size_t kStackBytes = 256 * 1024;

}  // namespace

int ServiceThread::start(const Thread* me, int (*prepare)(), void (*body)(ServiceThread&)) {
  for (;;) {
    uint32_t seen = state_.load(std::memory_order_acquire);
    if (seen == kRuns) return 0;
    if (seen != kNone) {
      base::futex_wait(&state_, seen);
      continue;
    }
    if (state_.compare_exchange_strong(seen, kStarts, std::memory_order_acquire)) break;
  }
  if (const int error = prepare != nullptr ? prepare() : 0; error != 0) {
    give_up(error);
    return error;
  }
  body_ = body;
  cpus_ = me->pool->group->cpus;
  request_ = context::DonorRequest{};
  request_.stack_size = kStackBytes;
  request_.thread_main = main;
  request_.argument = this;
  request_.mask = ~(base::signal_bit(32) | base::signal_bit(33));
  request_.finished = refused;
  if (!context::request_donor(&request_)) {
    const int error = request_.error;
    give_up(error);
    return error;
  }
  for (;;) {
    const uint32_t seen = state_.load(std::memory_order_acquire);
    if (seen == kRuns) return 0;
    if (seen == kNone) return error_.load(std::memory_order_relaxed);
    base::futex_wait(&state_, seen);
  }
}

void ServiceThread::give_up(int error) {
  error_.store(error, std::memory_order_relaxed);
  state_.store(kNone, std::memory_order_release);
  base::futex_wake(&state_, INT_MAX);
}

void ServiceThread::refused(context::DonorRequest* request, context::Identity*) {
  static_cast<ServiceThread*>(request->argument)->give_up(request->error);
}

bool ServiceThread::main(void* service) {
  auto* me = static_cast<ServiceThread*>(service);
  me->pthread_ = pthread_self();
  take_cpus(me->cpus_);
  base::ask_for_short_slices();
  me->state_.store(kRuns, std::memory_order_release);
  base::futex_wake(&me->state_, INT_MAX);
  me->body_(*me);
  return true;  // stop() joins it
}

bool ServiceThread::stop(void (*kick)()) {
  if (!runs()) return false;
  state_.store(kStopping, std::memory_order_release);
  kick();
  pthread_join(pthread_, nullptr);
  state_.store(kNone, std::memory_order_release);
  base::futex_wake(&state_, INT_MAX);
  return true;
}

bool ServiceThread::forget_after_fork() {
  const bool ran = state_.load(std::memory_order_relaxed) != kNone;
  new (this) ServiceThread;
  return ran;
}

}  // namespace bosk::sched
