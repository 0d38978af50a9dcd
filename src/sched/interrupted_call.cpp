// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/interrupted_call.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/syscalls.h"
#include "context/setxid.h"
#include "sched/clock.h"
#include "sched/machine_context.h"
#include "sched/repeated_call.h"

#if defined(__x86_64__)
extern "C" const char bosk_after_repeated_call;
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const char bosk_after_syscall;
#endif

namespace bosk::sched {

// Of what ticks know by its address there may be one copy only; clang makes no other.
#if defined(__clang__)
#define BOSK_ONE_COPY [[gnu::noinline]]
#else
#define BOSK_ONE_COPY [[gnu::noinline, gnu::noclone]]
#endif

BOSK_ONE_COPY long call_by_number(long number, const CallArguments& a) {
#if defined(__x86_64__)
  register long r10 asm("r10") = a[3];
  register long r8 asm("r8") = a[4];
  register long r9 asm("r9") = a[5];
  long result;
  asm volatile(
      "syscall\n\t"
      ".globl bosk_after_repeated_call\n\t"
      ".hidden bosk_after_repeated_call\n"
      "bosk_after_repeated_call:"
      : "=a"(result)
      : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
      : "rcx", "r11", "memory");
  return result;
#else
  return base::raw_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
#endif
}

namespace {

using base::raw_syscall;
using Arguments = CallArguments;

bool is_repeated_call([[maybe_unused]] const ucontext_t* interrupted) {
#if defined(__x86_64__)
  return interrupted_program_counter(interrupted) ==
         reinterpret_cast<uintptr_t>(&bosk_after_repeated_call);
#else
  return false;
#endif
}

/// Of a call that ours of syscall(2) has made (abi/libc/): -1: it is another. The library that programs load has it; tests of the
/// core alone need not.
long number_of_syscall_function([[maybe_unused]] const ucontext_t* interrupted) {
#if defined(__x86_64__)
  if (interrupted_program_counter(interrupted) == reinterpret_cast<uintptr_t>(&bosk_after_syscall))
    return interrupted->uc_mcontext.gregs[REG_RBX];
#endif
  return -1;
}

/// The number where the tick that cut the call was not announced by the monitor; -1: unknown.
long number_at(const ucontext_t* interrupted) {
  const long number = number_of_syscall_function(interrupted);
  return number >= 0 ? number : number_in_code(interrupted);
}

/// Of `time` (relative), what is left after `elapsed` ns. False: nothing.
bool what_is_left(const timespec* time, uint64_t elapsed, timespec* left) {
  const auto seconds = static_cast<long>(elapsed / 1'000'000'000);
  left->tv_sec = time->tv_sec - seconds;
  left->tv_nsec = time->tv_nsec - static_cast<long>(elapsed % 1'000'000'000);
  if (left->tv_nsec < 0) {
    left->tv_nsec += 1'000'000'000;
    --left->tv_sec;
  }
  return left->tv_sec >= 0;
}

/// The same call with the time-out that is argument `at`, if there is one, replaced by what is left.
long with_time_left(long number, Arguments a, int at, uint64_t elapsed) {
  timespec left{};
  if (a[at] == 0) return call_by_number(number, a);
  // Nothing left: it looks once more and says so itself.
  if (!what_is_left(reinterpret_cast<const timespec*>(a[at]), elapsed, &left)) left = {};
  a.at[at] = base::address_of(&left);
  return call_by_number(number, a);
}

/// Of a time-out in ms: what is left, rounded up.
int milliseconds_left(long timeout, uint64_t elapsed) {
  const int asked = static_cast<int>(timeout);
  if (asked < 0) return asked;
  const uint64_t spent = elapsed / 1'000'000;
  return spent >= static_cast<uint64_t>(asked) ? 0 : asked - static_cast<int>(spent);
}

/// Has the kernel kept when this one ends? Then it goes on by SYS_restart_syscall, to the nanosecond.
bool has_restart_block(long number, const Arguments& a) {
  switch (number) {
    case SYS_nanosleep:
#ifdef SYS_poll
    case SYS_poll:
#endif
      return true;
    case SYS_clock_nanosleep:
      return (a[1] & TIMER_ABSTIME) == 0;
    case SYS_futex:
      return a[3] != 0 && ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT ||
                           (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET);
    default:
      return false;
  }
}

/// A relative sleep: the arguments that say how long, and where the kernel writes what is left.
struct SleepArguments {
  timespec* time;
  timespec* rest;  ///< null: nobody asks
};
bool find_sleep(long number, const Arguments& a, SleepArguments* sleep) {
  const int first = number == SYS_nanosleep ? 0 : 2;
  if (number != SYS_nanosleep && (number != SYS_clock_nanosleep || (a[1] & TIMER_ABSTIME) != 0))
    return false;
  *sleep = {reinterpret_cast<timespec*>(a[first]), reinterpret_cast<timespec*>(a[first + 1])};
  return true;
}

/// Sleeps what the kernel says is left, else what should be after `elapsed`.
long sleep_again(long number, const Arguments& a, uint64_t elapsed) {
  const int time = number == SYS_nanosleep ? 0 : 2;
  if (a[time + 1] == 0) return with_time_left(number, a, time, elapsed);
  const timespec left = *reinterpret_cast<const timespec*>(a[time + 1]);
  Arguments rest = a;
  rest.at[time] = base::address_of(&left);
  return call_by_number(number, rest);
}

/// Programs say how long, and have what is left written, in one place, to go on after their signals. What was written for a tick is taken
/// back when the sleep is over: it is what the monitor has read before it sent the tick, or, where that cannot be (of an earlier call at
/// that place), what is left and what it took until then, as far as that is known. (Calls through libc never come to this:
/// abi/libc/sleep.cpp.)
class AskedTime {
 public:
  AskedTime(const InterruptedCall& call, const Arguments& a) {
    SleepArguments sleep;
    if (!find_sleep(call.number, a, &sleep) || sleep.rest == nullptr || sleep.time != sleep.rest)
      return;
    at_ = sleep.time;
    asked_ = *at_;
    if (asked_.tv_sec > INT32_MAX) return;
    const uint64_t left = static_cast<uint64_t>(asked_.tv_sec) * 1'000'000'000 +
                          static_cast<uint64_t>(asked_.tv_nsec);
    const uint64_t ns = call.asked >= left ? call.asked : left + call.waited;
    asked_ = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  }
  void put_back() const {
    if (at_ != nullptr) *at_ = asked_;
  }

 private:
  timespec* at_ = nullptr;
  timespec asked_{};
};

/// A call that has ended with EINTR, once more. `mask` is the thread's own.
long again(long number, const Arguments& a, uint64_t elapsed,
           [[maybe_unused]] const KernelMask* mask) {
  switch (number) {
    case SYS_nanosleep:
      return sleep_again(number, a, elapsed);
    case SYS_clock_nanosleep:
      return (a[1] & TIMER_ABSTIME) != 0 ? call_by_number(number, a)
                                         : sleep_again(number, a, elapsed);
    case SYS_futex:
      return (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT ? with_time_left(number, a, 3, elapsed)
                                                   : call_by_number(number, a);
    case SYS_rt_sigtimedwait:
      return with_time_left(number, a, 2, elapsed);
    case SYS_semtimedop:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
      return with_time_left(number, a, 3, elapsed);
    case SYS_io_getevents:
      return with_time_left(number, a, 4, elapsed);
#ifdef SYS_poll
    case SYS_poll: {
      const timespec time{static_cast<int>(a[2]) / 1000, static_cast<int>(a[2]) % 1000 * 1'000'000};
      timespec left{};
      if (!what_is_left(&time, elapsed, &left)) left = {};
      const long time_out = static_cast<int>(a[2]) < 0 ? 0 : base::address_of(&left);
      return call_by_number(SYS_ppoll,
                            {{a[0], a[1], time_out, base::address_of(mask), sizeof *mask, 0}});
    }
    case SYS_epoll_wait:
      return call_by_number(SYS_epoll_pwait, {{a[0], a[1], a[2], milliseconds_left(a[3], elapsed),
                                               base::address_of(mask), sizeof *mask}});
    case SYS_pause:
      return call_by_number(SYS_rt_sigsuspend,
                            {{base::address_of(mask), sizeof *mask, 0, 0, 0, 0}});
    // The kernel has written what is left into the time-out itself.
    case SYS_select:
#endif
    case SYS_pselect6:
    case SYS_ppoll:
    // No time-out, or an absolute one, or one that is the socket's and begins anew.
    case SYS_rt_sigsuspend:
    case SYS_semop:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_io_uring_enter:
    case SYS_fallocate:
      return call_by_number(number, a);
    case SYS_epoll_pwait: {
      Arguments rest = a;
      rest.at[3] = milliseconds_left(a[3], elapsed);
      return call_by_number(number, rest);
    }
    default:
      return -EINTR;
  }
}

Arguments arguments_of(const ucontext_t* interrupted) {
  Arguments a;
  for (int i = 0; i < 6; ++i) a.at[i] = call_argument(interrupted, i);
  return a;
}

/// A signal of the program's that the thread does not block has come meanwhile: it ends the call.
bool is_interrupted_by_program(KernelMask mask) {
  KernelMask pending = 0;
  raw_syscall(SYS_rt_sigpending, base::address_of(&pending), sizeof pending);
  return (pending & ~mask & ~base::signal_bit(context::signal_of_ticks())) != 0;
}

}  // namespace

InterruptedCall interrupted_call(const ucontext_t* interrupted, const context::CallNote& note) {
  using What = InterruptedCall::What;
  InterruptedCall call;
  if (is_before_call(interrupted)) {
    call.what = What::kAgain;
    call.number = number_before_call(interrupted);
    return call;
  }
  if (!is_after_call(interrupted)) return call;
  const long result = call_result(interrupted);
  if (result == -EINTR) {
    call.what = What::kEnded;
    call.repeated = is_repeated_call(interrupted);
    if (call.repeated) return call;
    call.number = note.read(interrupted_stack_pointer(interrupted),
                            interrupted_program_counter(interrupted), &call.since, &call.asked);
    if (call.number < 0) call.number = number_at(interrupted);
    const uint64_t now = clock_now();
    if (call.since != 0 && call.since < now) call.waited = now - call.since;
    return call;
  }
  if (result <= 0 || is_repeated_call(interrupted)) return call;
  long number = note.read(interrupted_stack_pointer(interrupted),
                          interrupted_program_counter(interrupted), &call.since, &call.asked);
  if (number < 0) number = number_at(interrupted);
  if (number >= 0 && is_partial(number, arguments_of(interrupted), result)) {
    call.what = What::kPartly;
    call.number = number;
  }
  return call;
}

bool is_at_yield(const ucontext_t* interrupted) {
  if (!is_after_call(interrupted) || call_result(interrupted) != 0) return false;
#if defined(__aarch64__)
  return interrupted->uc_mcontext.regs[8] == SYS_sched_yield;
#else
  return number_at(interrupted) == SYS_sched_yield;
#endif
}

void continue_call(const Thread* me, ucontext_t* interrupted, const InterruptedCall& call,
                   bool moved) {
  const KernelMask mask = interrupted_mask(interrupted);
  if ((call.number < 0 && !call.repeated) || is_interrupted_by_program(mask)) return;
  if (call.repeated) {
    set_call_result(interrupted, moved ? kCutAndMoved : kCutAgain);
    return;
  }
  const Arguments a = arguments_of(interrupted);
  const uint64_t since = call.since != 0 ? call.since : clock_now();
  const AskedTime asked(call, a);
  const volatile uint32_t& ticks = me->ticks;
  const uint32_t ticks_before = ticks;
  // Computes for long and then gives up what it has done: with ticks it would never end.
  const KernelMask no_ticks =
      call.number == SYS_fallocate ? base::signal_bit(context::signal_of_ticks()) : 0;
  base::set_signal_mask(mask | no_ticks);
  long result;
  do {
    // To return from a handler, be it a tick's, is to give the restart block up.
    moved = moved || ticks != ticks_before;
    if (call.what == InterruptedCall::What::kPartly)
      result = finish_partial(call.number, a, call_result(interrupted), ticks);
    else if (!moved && has_restart_block(call.number, a))
      result = call_by_number(SYS_restart_syscall, {});
    else
      result = again(call.number, a, clock_now() - since, &mask);
    if (result == kCutAndMoved || (result == -EINTR && !moved && ticks != ticks_before)) {
      moved = true;
      result = kCutAgain;
    }
  } while (result == kCutAgain);
  if (result == 0) asked.put_back();
  base::set_signal_mask(~KernelMask{0});
  set_call_result(interrupted, result);
}

}  // namespace bosk::sched
