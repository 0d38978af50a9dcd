// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/read_text.h"
#include "context/setxid.h"
#include "sched/clock.h"
#include "sched/configuration.h"
#include "sched/pause.h"
#include "sched/pool_list.h"
#include "sched/scheduler.h"
#include "sched/service_thread.h"
#include "sched/spins/outside.h"
#include "sched/thread_clock.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"

namespace bosk::sched {
namespace {

struct Monitor {
  ServiceThread thread;
  /// Futex: 1 while it sleeps for want of ticks. It stores, passes a full fence and looks at the timers'
  /// flags; who arms one raises the flag, passes a full fence and looks here. Of the two fences one comes
  /// first: the other side sees what was stored before it.
  std::atomic<uint32_t> sleeps{0};
  std::atomic<uint32_t> stops{0};  ///< futex, to cut a pause short
  bool may_open = false;           ///< its own
  OutsideWatch outside;
};
constinit Monitor the_monitor;

enum class Seen : uint8_t { kRuns, kInCall, kElsewhere, kUnknown };

struct SeenCall {
  long number = -1;
  long arguments[6]{};
  uintptr_t stack = 0;
  uintptr_t place = 0;  ///< where it will return to
};

/// What /proc says of the kernel thread, and of its call.
Seen look_into(int tid, SeenCall* call) {
  char path[64] = "/proc/self/task/";
  char* at = path + strlen(path);
  char digits[16];
  int count = 0;
  for (int rest = tid; rest != 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) *at++ = digits[--count];
  memcpy(at, "/syscall", sizeof "/syscall");
  if (!the_monitor.may_open) return Seen::kUnknown;
  char text[256];
  if (!base::read_text(path, text)) return Seen::kUnknown;
  if (text[0] == 'r') return Seen::kRuns;
  // NUMBER six arguments SP PC; or -1 SP PC for who waits for a page.
  char* rest = nullptr;
  call->number = strtol(text, &rest, 10);
  if (call->number < 0) return Seen::kElsewhere;
  for (long& argument : call->arguments) argument = static_cast<long>(strtoul(rest, &rest, 16));
  call->stack = strtoul(rest, &rest, 16);
  call->place = strtoul(rest, &rest, 16);
  return call->place != 0 ? Seen::kInCall : Seen::kUnknown;
}

/// How long a relative sleep is that will have what is left of it written over that when it is cut (nanosleep(&t, &t)); 0: it is none,
/// or longer than can be told. The program's memory, which another thread may change or unmap: the kernel reads it.
uint64_t asked_of_sleep(const SeenCall& call) {
  const bool by_clock = call.number == SYS_clock_nanosleep;
  if (!by_clock && call.number != SYS_nanosleep) return 0;
  if (by_clock && (call.arguments[1] & TIMER_ABSTIME) != 0) return 0;
  const long* times = call.arguments + (by_clock ? 2 : 0);
  if (times[0] != times[1]) return 0;
  timespec time{};
  const long memory = base::raw_syscall(SYS_openat, AT_FDCWD, base::address_of("/proc/self/mem"),
                                        O_RDONLY | O_CLOEXEC);
  if (memory < 0) return 0;
  const long count =
      base::raw_syscall(SYS_pread64, memory, base::address_of(&time), sizeof time, times[0]);
  base::raw_syscall(SYS_close, memory);
  if (count != sizeof time || time.tv_sec < 0 || time.tv_sec > INT32_MAX || time.tv_nsec < 0 ||
      time.tv_nsec >= 1'000'000'000)
    return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

bool an_open_group(Worker* w) {
  // The list may change meanwhile; groups are never freed while the pool lives.
  BarrierGroup* group = seen(w->groups);
  for (int i = 0; i < 64 && group != nullptr; ++i, group = seen(group->next)) {
    const Bubble* bubble = seen(group->bubble);
    if (bubble == nullptr) continue;
    if (bubble->meeting.is_open(std::atomic_ref(group->epoch).load(std::memory_order_relaxed)) ||
        bubble->queued_work.load(std::memory_order_relaxed) != 0)
      return true;
  }
  return false;
}

bool open_ghosts(Worker* w) {
  const uint32_t count = w->open_count.load(std::memory_order_acquire);
  auto* list = w->open_list.load(std::memory_order_acquire);
  for (uint32_t at = 0; at < count; ++at) {
    const Bubble* bubble = list[at].load(std::memory_order_acquire);
    if (bubble != nullptr && bubble->ghosts.left() != 0) return true;
  }
  return !w->share.empty();
}

/// Does anything wait for what the worker would do?
bool waits_for(Worker* w) {
  if (!w->ready.empty_hint() || open_ghosts(w) || an_open_group(w) ||
      w->mail.load(std::memory_order_relaxed) != nullptr || has_entities(w) ||
      std::atomic_ref(w->unreported_groups).load(std::memory_order_relaxed) != 0)
    return true;
  const Bubble* ended = seen(w->ended_ghosts.bubble);
  if (ended != nullptr && ended->queued_work.load(std::memory_order_relaxed) != 0) return true;
  return pools.look_at_native.holds(w->native_condition, w->native);
}

/// … or for any worker's time?
bool waits_anywhere(const Pool* pool) {
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < workers; ++i) {
    Worker* w = pool->worker(i);
    if (!w->ready.empty_hint() || open_ghosts(w)) return true;
  }
  return false;
}

struct Look {
  uint64_t now;
  bool any = false;     ///< ticks are on, and not only of those that are left alone
  bool acted = false;   ///< somebody was told
  bool unsure = false;  ///< somebody may be blocked: look again soon
};

/// It has just been seen in a call. Not before that call has begun, or a sleep that goes on elsewhere would end too early: who has not
/// run since he was looked at has not entered it since then either; of anybody else no more is known than that he is in it now.
uint64_t in_call_since(const context::Identity* kernel) {
  return thread_clock_now(kernel->tid) == kernel->seen_clock ? kernel->seen_at : clock_now();
}

/// `kernel`, which ran for so long since the last look, may be blocked. Tells it, if that is so.
void tell_if_blocked(context::Identity* kernel, uint64_t ran, Look* look) {
  SeenCall call;
  switch (look_into(kernel->tid, &call)) {
    case Seen::kRuns:
    case Seen::kElsewhere:
      return;
    case Seen::kInCall:
      kernel->call_note.write(call.number, call.stack, call.place, in_call_since(kernel),
                              asked_of_sleep(call));
      break;
    case Seen::kUnknown:
      // No /proc. Who has not run at all between two looks is taken for blocked; without a CPU he loses nothing.
      if (ran != 0) return;
      kernel->call_note.clear();
      break;
  }
  look->acted = true;
  send_tick(kernel);
}

void look_at(Worker* w, Look* look) {
  context::Identity* kernel = w->kernel.load(std::memory_order_acquire);
  if (kernel->timer_armed.load(std::memory_order_relaxed) == 0) return;
  const uint64_t clock = thread_clock_now(kernel->tid);
  if (clock == UINT64_MAX) return;
  const uint64_t ran = clock - kernel->seen_clock;
  const uint64_t passed = look->now - kernel->seen_at;
  if (ran != 0) {
    kernel->seen_clock = clock;
    kernel->seen_at = clock_now();  // after its clock was read: in_call_since()
    kernel->idle_looks = 0;
  }
  look->any = true;
  // The half of the time is a guess at who runs; the rest looks closer.
  if (2 * ran > passed) return;
  Thread* current = seen(w->current);
  const context::Identity* identity = seen(current->identity);
  const bool in_runtime =
      std::atomic_ref(identity->block->preempt_off).load(std::memory_order_relaxed) != 0;
  const Bubble* bubble = seen(current->bubble);
  const bool in_region = bubble == nullptr || entities_of(w) != nullptr ||
                         bubble->depth.load(std::memory_order_relaxed) != 0;
  // An explicit thread's bubble may wait for it to come back, which it finds out at ticks.
  const bool is_explicit =
      (std::atomic_ref(current->notes).load(std::memory_order_relaxed) & kIsEntity) != 0;
  if (!in_runtime && in_region && (is_explicit || waits_for(w) || waits_anywhere(w->pool))) {
    kernel->idle_looks = 0;
    look->unsure = true;
    tell_if_blocked(kernel, ran, look);
    return;
  }
  if (ran != 0 || ++kernel->idle_looks <= tuning::kIdleLooks) return;
  // Left alone, until somebody arms its ticks: that is what the flag says. Its timer counts CPU time and may go on.
  kernel->timer_armed.store(0, std::memory_order_release);
  // Who queues something for it sees the flag, or is seen here, as with a worker whose ticks found nothing
  // (preemption_protocol.h). It may itself have come back meanwhile, seen the old flag and gone on relying on it:
  // then its clock has moved. If not, it has done nothing since, and sees the new one, by the barrier, when it does.
  base::StdAtomics::heavy_barrier();
  if (waits_for(w) || thread_clock_now(kernel->tid) != kernel->seen_clock) arm_kernel_timer(kernel);
}

Look look_at_all() {
  Look look{clock_now()};
  base::SpinGuard guard(pools.lock);
  the_monitor.outside.begin_look();
  for (Pool* pool = pools.first; pool != nullptr; pool = pool->next) {
    if (pool->threading.load(std::memory_order_relaxed) == Threading::kKernelThreads) continue;
    the_monitor.outside.look_at(pool);
    if (pool->threading.load(std::memory_order_relaxed) != Threading::kMultiplexed) continue;
    const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < workers; ++i) look_at(pool->worker(i), &look);
  }
  if (the_monitor.outside.end_look()) look.acted = true;
  if (the_monitor.outside.goes_on()) look.any = true;
  return look;
}

void wait_for(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000u),
                      static_cast<long>(ns % 1'000'000'000u)};
  base::futex_wait(&the_monitor.stops, 0, &time);
}

void watch(ServiceThread& thread) {
#ifdef SYS_close_range
  // Descriptors of its own, none: what it opens is not seen by the program, and what that closes is closed. Where
  // this is refused it does without /proc.
  constexpr unsigned kUnshare = 1U << 1;
  the_monitor.may_open = base::raw_syscall(SYS_close_range, 0, INT32_MAX, kUnshare) == 0;
#endif
  uint32_t quick = 0;
  while (!thread.is_stopping()) {
    const Look look = look_at_all();
    if (!look.any) {
      the_monitor.sleeps.store(1, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (look_at_all().any || thread.is_stopping()) {
        the_monitor.sleeps.store(0, std::memory_order_relaxed);
        wait_for(tuning::kQuickTickNs);
        continue;
      }
      base::futex_wait(&the_monitor.sleeps, 1);
      continue;
    }
    quick = look.acted || look.unsure ? tuning::kQuickLooks : quick - (quick != 0);
    wait_for(period_of_ticks(quick != 0));
  }
}

void kick() {
  the_monitor.stops.store(1, std::memory_order_release);
  base::futex_wake(&the_monitor.stops, 1);
  the_monitor.sleeps.store(0, std::memory_order_release);
  base::futex_wake(&the_monitor.sleeps, 1);
}

}  // namespace

int ensure_monitor(const Thread* me) {
  if (configuration().preempt_period_us == 0) return 0;
  return the_monitor.thread.ensure(
      me,
      [] {
        the_monitor.stops.store(0, std::memory_order_relaxed);
        return 0;
      },
      watch);
}

void tell_monitor() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (the_monitor.sleeps.load(std::memory_order_relaxed) == 0) return;
  the_monitor.sleeps.store(0, std::memory_order_relaxed);
  base::futex_wake(&the_monitor.sleeps, 1);
}

bool send_tick(context::Identity* kernel) {
  siginfo_t info{};
  info.si_signo = context::signal_of_ticks();
  info.si_code = SI_TIMER;
  // The limit of signals that wait may have been reached; timers have theirs set aside.
  const long error = base::raw_syscall(SYS_rt_tgsigqueueinfo, base::raw_syscall(SYS_getpid),
                                       kernel->tid, info.si_signo, base::address_of(&info));
  if (error == -EAGAIN) look_again_soon(kernel);
  return error == 0 || error == -EAGAIN;
}

void send_tick_if_it_runs(context::Identity* kernel) {
  if (runs_now(kernel->tid)) send_tick(kernel);
}

bool wants_cpu(const context::Identity* kernel) {
  if (runs_now(kernel->tid)) return true;
  SeenCall call;
  return look_into(kernel->tid, &call) == Seen::kRuns;
}

void stop_monitor() { the_monitor.thread.stop(kick); }

void monitor_forget_after_fork() {
  the_monitor.thread.forget_after_fork();
  the_monitor.sleeps.store(0, std::memory_order_relaxed);
  the_monitor.stops.store(0, std::memory_order_relaxed);
}

}  // namespace bosk::sched
