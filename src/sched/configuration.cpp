// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Process-wide set-up of the scheduler.
#include "sched/configuration.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "base/cpu.h"
#include "base/syscalls.h"
#include "context/annotations.h"
#include "context/identity.h"
#include "context/setxid.h"
#include "sched/homes.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

constinit Configuration the_configuration;
constinit std::atomic<ConfigureHook> the_hook{nullptr};
constinit std::atomic<uint32_t> state{0};  // futex: 0 not yet, 1 under way, 2 done

void in_child() {
  context::identity_forget_after_fork();
  context::setxid_forget_after_fork();
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

void configure() {
  if (BOSK_LIKELY(state.load(std::memory_order_acquire) == 2)) return;
  uint32_t expected = 0;
  if (!state.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
    while (state.load(std::memory_order_acquire) != 2) base::futex_wait(&state, 1);
    return;
  }
  the_configuration.spin_cycles = 200 * base::cycles_per_microsecond();
  the_configuration.stack_size = context::default_stack_size();
  the_configuration.crowded_spin_cycles = 5 * base::cycles_per_microsecond();
  if (ConfigureHook hook = the_hook.load(std::memory_order_relaxed)) hook(&the_configuration);
  if (!context::kPreemptible) the_configuration.preempt_period_us = 0;
  set_carrier_stack_size(the_configuration.stack_size);
  base::StdAtomics::prepare_barriers();
  if (the_configuration.preempt_period_us != 0)
    start_preemption();
  else
    ticks_may_miss.store(true, std::memory_order_relaxed);
  pthread_atfork(nullptr, nullptr, in_child);
  state.store(2, std::memory_order_release);
  base::futex_wake(&state, INT32_MAX);
}

}  // namespace bosk::sched
