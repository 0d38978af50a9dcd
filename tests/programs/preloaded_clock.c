// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library that is preloaded behind ours answers for a clock, as those do that set another date for a program: callers get what it says.
// The same file is the library (-DTHE_LIBRARY) and the program.
#ifdef THE_LIBRARY
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec* time) {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec = 1000;
  return (int)result;
}
#else
#include "check.h"

#include <omp.h>
#include <time.h>

int main(void) {
  int right = 0;
#pragma omp parallel num_threads(4) reduction(+ : right)
  {
    struct timespec t;
    right += clock_gettime(CLOCK_REALTIME, &t) == 0 && t.tv_sec == 1000;
    right += clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 && t.tv_sec < 1000;
  }
  CHECK(right == 8, "%d of 8 answers are right", right);
  return passed();
}
#endif
