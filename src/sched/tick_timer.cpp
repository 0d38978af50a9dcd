// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timers of kernel threads. When they run: preemption_protocol.h.
#include "sched/tick_timer.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "context/identity.h"
#include "context/setxid.h"
#include "sched/configuration.h"
#include "sched/kernel_threads.h"
#include "sched/preemption.h"
#include "sched/preemption_protocol.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

timespec timespec_of(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
}

void set_timer(int timer, uint64_t period_ns, uint64_t first_ns) {
  const itimerspec when{timespec_of(period_ns), timespec_of(first_ns)};
  base::raw_syscall(SYS_timer_settime, timer, 0, base::address_of(&when), 0);
}

void start_timer(context::Identity* kernel) {
  const uint32_t period = configuration().preempt_period_us;
  if (period == 0) return;
  // On kernel threads there is nothing that a tick could switch to; pools that are multiplexed have timers.
  if (kernel->timer.load(std::memory_order_relaxed) < 0 &&
      on_kernel_threads.load(std::memory_order_relaxed))
    return;
  if (make_timer(kernel) != 0) {
    // A donor's kernel thread: those of workers have theirs. Cooperative switching goes on.
    ticks_may_miss.store(true, std::memory_order_relaxed);
    return;
  }
  const int timer = kernel->timer.load(std::memory_order_relaxed);
  kernel->idle_ticks.store(0, std::memory_order_relaxed);
  kernel->quick_ticks.store(false, std::memory_order_relaxed);
  const uint64_t period_ns = uint64_t{period} * 1000;
  set_timer(timer, period_ns, period_ns);
}

}  // namespace

int make_timer(context::Identity* kernel) {
  int timer = kernel->timer.load(std::memory_order_relaxed);
  if (timer >= 0) return 0;
  // The factory is the process's first thread, with which glibc installs the handler that ours goes around.
  if (!context::start_factory_early() || !context::install_setxid_wrapper()) return EAGAIN;
  // CLOCK_MONOTONIC: a CPU-time clock never ticks for a thread that is blocked in the kernel.
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = context::signal_of_ticks();
  event._sigev_un._tid = kernel->tid;
  int id = -1;
  const long error = base::raw_syscall(SYS_timer_create, CLOCK_MONOTONIC, base::address_of(&event),
                                       base::address_of(&id));
  if (error != 0) return static_cast<int>(-error);
  // Two may be here, when the kernel thread disarms between their coming; one timer stays.
  if (!kernel->timer.compare_exchange_strong(timer, id, std::memory_order_relaxed))
    base::raw_syscall(SYS_timer_delete, id);
  return 0;
}

uint64_t period_of_ticks(bool quick) {
  const uint64_t period = uint64_t{configuration().preempt_period_us} * 1000;
  return quick && period > kQuickTickNs ? kQuickTickNs : period;
}

void set_tick_speed(context::Identity* kernel, bool quick) {
  const int timer = kernel->timer.load(std::memory_order_relaxed);
  if (kernel->quick_ticks.load(std::memory_order_relaxed) == quick || timer < 0) return;
  kernel->quick_ticks.store(quick, std::memory_order_relaxed);
  const uint64_t period = period_of_ticks(quick);
  set_timer(timer, period, period);
}

void look_again_soon(context::Identity* kernel) {
  const int timer = kernel->timer.load(std::memory_order_relaxed);
  const bool quick = kernel->quick_ticks.load(std::memory_order_relaxed);
  if (timer >= 0) set_timer(timer, period_of_ticks(quick), SpinProbe::kBetweenLooksNs);
}

void arm_kernel_timer(context::Identity* kernel) {
  arm_ticks(kernel->timer_armed, [kernel] { start_timer(kernel); });
}

void stop_timer(context::Identity* kernel) {
  const int timer = kernel->timer.load(std::memory_order_relaxed);
  if (timer >= 0) set_timer(timer, 0, 0);
}

void disarm_timer(context::Identity* kernel) {
  disarm_ticks(kernel->timer_armed, [kernel] { stop_timer(kernel); });
}

void delete_timer(context::Identity* kernel) {
  disarm_timer(kernel);
  const int timer = kernel->timer.exchange(-1, std::memory_order_relaxed);
  if (timer >= 0) base::raw_syscall(SYS_timer_delete, timer);
}

void arm_timer_slow(Worker* w) { arm_kernel_timer(w->kernel.load(std::memory_order_relaxed)); }

void note_ready(Worker* target) {
  // A timer too many ticks a while and stops.
  if (context::Identity* kernel = kernel_to_arm<base::StdAtomics>(target->kernel))
    arm_kernel_timer(kernel);
}

void tick_soon(Worker* target) {
  note_ready(target);
  // acquire: as in kernel_to_arm(). A role that moves meanwhile gets this tick for another of its threads, and the
  // ordinary ones of note_ready() in any case.
  tick_soon(target->kernel.load(std::memory_order_acquire));
}

void tick_soon(context::Identity* kernel) {
  const int timer = kernel->timer.load(std::memory_order_relaxed);
  if (timer < 0) return;
  set_timer(timer, period_of_ticks(true), 1);
  // The flag after the timer, set_tick_speed() the other way round: a flag that ends lowered was lowered last, so its
  // timer was set last, too, and no quick ticks stay behind. (The kernel's lock of the timer orders the two.)
  kernel->quick_ticks.store(true, std::memory_order_relaxed);
}

}  // namespace bosk::sched
