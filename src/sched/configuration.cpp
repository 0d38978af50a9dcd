// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Process-wide set-up of the scheduler.
#include "sched/configuration.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/single_threaded.h>

#include <atomic>

#include "base/cpu.h"
#include "base/maker_lock.h"
#include "base/syscalls.h"
#include "context/annotations.h"
#include "context/identity.h"
#include "context/setxid.h"
#include "sched/cpu_clock.h"
#include "sched/homes.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

constinit Configuration the_configuration;
constinit std::atomic<ConfigureHook> the_hook{nullptr};
constinit std::atomic<bool> configured{false};
constinit base::MakerLock configuring;
constinit long child_is = 0;  ///< the process that in_child() has run in

void before_fork() { configuring.before_fork(); }
void in_parent() { configuring.in_parent(); }

void in_child() {
  configuring.in_child();
  // Registered twice (maker_lock.h), or there is nothing to forget.
  const long process = base::raw_syscall(SYS_getpid);
  if (child_is == process || !configured.load(std::memory_order_relaxed)) return;
  child_is = process;
  context::identity_forget_after_fork();
  context::setxid_forget_after_fork();
  cpu_time_forget_after_fork();
  forget_pools_after_fork();
  forget_seats_after_fork();
  if (the_configuration.child_hook != nullptr) the_configuration.child_hook();
  if (auto* forget = forget_entities_after_fork.load(std::memory_order_relaxed)) forget();
}

}  // namespace

const Configuration& configuration() { return the_configuration; }

void set_configure_hook(ConfigureHook hook) {
  // relaxed: every caller says the same, and before its own configure().
  the_hook.store(hook, std::memory_order_relaxed);
}

/// When the library is loaded: once the process has a second thread (a BLAS with a pool of its own is enough) the kernel takes 7 to 10 ms
/// for the answer, in the middle of the first region. Nothing is concluded from it: the program may put itself into a sandbox before that.
[[gnu::constructor]] static void register_for_barriers_early() {
  if (__libc_single_threaded != 0)
    base::raw_syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static void configure_now() {
  the_configuration.spin_cycles = 200 * base::cycles_per_microsecond();
  the_configuration.stack_size = context::default_stack_size();
  if (ConfigureHook hook = the_hook.load(std::memory_order_relaxed)) hook(&the_configuration);
  if (!context::kPreemptible) the_configuration.preempt_period_us = 0;
  set_carrier_stack_size(the_configuration.stack_size);
  base::StdAtomics::prepare_barriers();
  if (the_configuration.preempt_period_us != 0)
    start_preemption();
  else
    ticks_may_miss.store(true, std::memory_order_relaxed);
}

void configure() {
  // acquire pairs with the release below: who finds it done sees all of it.
  if (BOSK_LIKELY(configured.load(std::memory_order_acquire))) return;
  static constinit pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_atfork(before_fork, in_parent, in_child); });
  configuring.lock();
  if (!configured.load(std::memory_order_relaxed)) {
    configure_now();
    configured.store(true, std::memory_order_release);
  }
  configuring.unlock();
}

}  // namespace bosk::sched
