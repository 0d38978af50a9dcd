// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// As calls.c, for calls that are made by syscall(2).
#include "calls.h"

#include <linux/futex.h>
#include <sys/syscall.h>

static void by_futex(void) {
  int word = 0;
  MUST(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_time, NULL, 0) == -1 &&
       errno == ETIMEDOUT);
}
static void by_futex_until(void) {
  int word = 0;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += wait_ms * 1000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  MUST(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &end, NULL,
               FUTEX_BITSET_MATCH_ANY) == -1 &&
       errno == ETIMEDOUT);
}
static void by_sleep_number(void) {
  MUST(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait_time, NULL) == 0);
}

static const struct call kCalls[] = {
    {"futex", by_futex, NULL},
    {"futex_until", by_futex_until, NULL},
    {"clock_nanosleep", by_sleep_number, NULL},
};

int main(int argc, char** argv) {
  return run_call(argc, argv, kCalls, sizeof kCalls / sizeof kCalls[0]);
}
