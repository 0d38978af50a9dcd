// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the hard programs share: a deadline that needs no signal of theirs, computing without calls, handing over by spinning.
//
// A runtime may decide by a program's imports and by its TLS what the program could notice: so nothing here is thread-local
// nor imports pthread_kill, syscall or prctl. A program that needs one of them says so itself.
#pragma once

#define BOSK_TEST_OWN_DEADLINE
#include "../programs/check.h"

#include <omp.h>
#include <time.h>

#ifdef __cplusplus
extern "C" pid_t _Fork(void) noexcept;
#else
extern pid_t _Fork(void);
#endif

/// Seconds.
__attribute__((unused)) static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/// The deadline is kept by another process: programs here block all signals, handle all signals, use SIGALRM.
__attribute__((constructor(101), unused)) static void guard_at_start_(void) {
  const char* text = getenv("BOSK_TEST_ALARM");
  const int seconds = text && atoi(text) > 0 ? atoi(text) : 60;
  const pid_t program = getpid();
  if (_Fork() != 0) return;
  const double end = now() + seconds;
  while (getppid() == program) {
    if (now() > end) {
      static const char line[] = "guard: the program hangs\n";
      const ssize_t written = write(STDOUT_FILENO, line, sizeof line - 1);
      (void)written;
      kill(program, SIGKILL);
      break;
    }
    const struct timespec pause_of = {0, 20000000};
    nanosleep(&pause_of, NULL);
  }
  _exit(0);
}

/// A delay loop of so many rounds, as programs have it: a counter in memory, no call.
__attribute__((noinline, unused)) static void delay_rounds(long rounds) {
  for (volatile long i = 0; i < rounds; ++i) {
  }
}

static long rounds_per_ms_;

__attribute__((constructor(102), unused)) static void calibrate_(void) {
  enum { kRounds = 1000000 };
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = now();
    delay_rounds(kRounds);
    const double spent = now() - start;
    if (spent < best) best = spent;
  }
  rounds_per_ms_ = (long)(kRounds / (1e3 * best)) + 1;
}

/// Computes for about so long (on an idle machine), in a tight loop without a call.
__attribute__((unused)) static void compute(double ms) {
  delay_rounds((long)(ms * (double)rounds_per_ms_));
}

/// Of large teams every so manieth takes part in rounds, as others pass the time at the barrier: with all of 64 a round takes
/// seconds wherever each has a kernel thread, and a matrix of tests most of its days.
__attribute__((unused)) static int stride_of(int team) { return team > 16 ? team / 16 : 1; }

/// The members of a team of `team` hand `*turn` round by spinning, and compute for `ms` each; begins with 0 and ends with hops_of().
__attribute__((unused)) static void hand_round_working(int* turn, int me, int team, int laps,
                                                       double ms) {
  const int stride = stride_of(team), ring = (team + stride - 1) / stride;
  if (me % stride != 0) return;
  for (int lap = 0; lap < laps; ++lap) {
    while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != lap * ring + me / stride) {
    }
    if (ms > 0) compute(ms);
    __atomic_store_n(turn, lap * ring + me / stride + 1, __ATOMIC_RELEASE);
  }
}
__attribute__((unused)) static void hand_round(int* turn, int me, int team, int laps) {
  hand_round_working(turn, me, team, laps, 0);
}
__attribute__((unused)) static int hops_of(int team, int laps) {
  const int stride = stride_of(team);
  return (team + stride - 1) / stride * laps;
}

/// Laps such that the hops stay some hundred: with n spinning kernel threads on a CPU each hop may take n time slices.
__attribute__((unused)) static int laps_for(int team) {
  return team <= 4 ? 10 : team <= 8 ? 4 : team <= 16 ? 2 : 1;
}

__attribute__((unused)) static int is(const char* text, const char* name) {
  return strcmp(text, name) == 0;
}

__attribute__((noreturn, unused)) static void no_such_mode(void) {
  fputs("which mode?\n", stderr);
  exit(2);
}
