// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timers of kernel threads. When they run: preemption_protocol.h.
#include "sched/tick_timer.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "context/identity.h"
#include "context/setxid.h"
#include "sched/configuration.h"
#include "sched/kernel_threads.h"
#include "sched/monitor.h"
#include "sched/preemption.h"
#include "sched/preemption_protocol.h"
#include "sched/scheduler.h"
#include "sched/thread_clock.h"
#include "sched/tuning.h"

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
  const uint64_t period_ns = uint64_t{period} * 1000;
  set_timer(timer, period_ns, period_ns);
}

}  // namespace

/// Null when it is there afterwards, in `timer`.
static int make_one(std::atomic<int>* timer, int clock, int tid, int value = kOrdinaryTick) {
  if (timer->load(std::memory_order_relaxed) >= 0) return 0;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = context::signal_of_ticks();
  event.sigev_value.sival_int = value;
  event._sigev_un._tid = tid;
  int id = -1;
  const long error =
      base::raw_syscall(SYS_timer_create, clock, base::address_of(&event), base::address_of(&id));
  if (error != 0) return static_cast<int>(-error);
  // Two may be here, when the kernel thread disarms between their coming; one timer stays.
  int none = -1;
  if (!timer->compare_exchange_strong(none, id, std::memory_order_relaxed))
    base::raw_syscall(SYS_timer_delete, id);
  return 0;
}

/// The kernel looks at CPU clocks at its own ticks, 1 to 10 ms apart. Who asks for a shorter period gets real time,
/// and with it ticks that meet threads in the kernel.
static bool counts_cpu_time() {
  static constinit std::atomic<int64_t> resolution{0};
  int64_t ns = resolution.load(std::memory_order_relaxed);
  if (ns == 0) {
    timespec coarse{};
    base::raw_syscall(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, base::address_of(&coarse));
    ns = coarse.tv_nsec != 0 ? coarse.tv_nsec : 10'000'000;
    resolution.store(ns, std::memory_order_relaxed);
  }
  return int64_t{configuration().preempt_period_us} * 1000 >= ns;
}

int make_timer(context::Identity* kernel) {
  if (kernel->timer.load(std::memory_order_relaxed) >= 0 &&
      kernel->soon.load(std::memory_order_relaxed) >= 0)
    return 0;
  // The factory is the process's first thread, with which glibc installs the handler that ours goes around.
  if (!context::start_factory_early() || !context::install_setxid_wrapper()) return EAGAIN;
  // Its CPU clock: who is blocked in the kernel is not interrupted.
  const int error = make_one(
      &kernel->timer, counts_cpu_time() ? thread_clock(kernel->tid) : CLOCK_MONOTONIC, kernel->tid);
  return error != 0 ? error : make_one(&kernel->soon, CLOCK_MONOTONIC, kernel->tid);
}

void sample_from_now_on(context::Identity* kernel) {
  if (configuration().preempt_period_us == 0 || make_timer(kernel) != 0 ||
      make_one(&kernel->samples, thread_clock(kernel->tid), kernel->tid, kSampleTick) != 0)
    return;
  set_timer(kernel->samples.load(std::memory_order_relaxed), tuning::kSampleCpuNs,
            tuning::kSampleCpuNs);
}

uint64_t period_of_ticks(bool quick) {
  const uint64_t period = uint64_t{configuration().preempt_period_us} * 1000;
  return quick && period > tuning::kQuickTickNs ? tuning::kQuickTickNs : period;
}

void set_slice(context::Identity* kernel, uint64_t ns, bool again) {
  const bool quick = ns != 0;
  const int soon = kernel->soon.load(std::memory_order_relaxed);
  if (soon < 0 || (!quick && !kernel->quick_ticks.load(std::memory_order_relaxed))) return;
  kernel->quick_ticks.store(quick, std::memory_order_relaxed);
  const uint64_t pause = period_of_ticks(true);
  set_timer(soon, !again || !quick ? 0 : ns > pause ? ns : pause, ns);
}

void look_again_soon(context::Identity* kernel) { look_again_in(kernel, tuning::kBetweenLooksNs); }

bool look_again_in(context::Identity* kernel, uint64_t ns) {
  if (ns == 0 && send_tick(kernel)) return true;
  const int soon = kernel->soon.load(std::memory_order_relaxed);
  if (soon >= 0) set_timer(soon, 0, ns != 0 ? ns : 1);
  return soon >= 0;
}

void arm_kernel_timer(context::Identity* kernel) {
  arm_ticks(kernel->timer_armed, [kernel] {
    start_timer(kernel);
    tell_monitor();
  });
}

void stop_timer(context::Identity* kernel) {
  const int timer = kernel->timer.load(std::memory_order_relaxed);
  if (timer >= 0) set_timer(timer, 0, 0);
  set_slice(kernel, 0);
}

void disarm_timer(context::Identity* kernel) {
  disarm_ticks(kernel->timer_armed, [kernel] { stop_timer(kernel); });
}

void delete_timer(context::Identity* kernel) {
  disarm_timer(kernel);
  for (std::atomic<int>* timer : {&kernel->timer, &kernel->soon, &kernel->samples}) {
    const int id = timer->exchange(-1, std::memory_order_relaxed);
    if (id >= 0) base::raw_syscall(SYS_timer_delete, id);
  }
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

void look_soon(const Worker* target) {
  // acquire: as above.
  context::Identity* kernel = target->kernel.load(std::memory_order_acquire);
  if (configuration().preempt_period_us == 0 ||
      kernel->timer_armed.load(std::memory_order_relaxed) != 0 || make_timer(kernel) != 0)
    return;
  set_timer(kernel->soon.load(std::memory_order_relaxed), 0, 1);
}

void tick_soon(context::Identity* kernel) {
  const int soon = kernel->soon.load(std::memory_order_relaxed);
  if (soon < 0) return;
  set_timer(soon, period_of_ticks(true), 1);
  // The flag after the timer, set_slice() the other way round: a flag that ends lowered was lowered last, so its
  // timer was set last, too, and no quick ticks stay behind. (The kernel's lock of the timer orders the two.)
  kernel->quick_ticks.store(true, std::memory_order_relaxed);
}

}  // namespace bosk::sched
