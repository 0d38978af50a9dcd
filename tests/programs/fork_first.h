// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forks beside another thread's first use of something: in many processes, each of which has never used it.
#pragma once

#include "children.h"

#include <pthread.h>
#include <time.h>

static int fork_first_begun_;

static double now_us_(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void* first_use_(void* use) {
  __atomic_store_n(&fork_first_begun_, 1, __ATOMIC_RELEASE);
  (*(void (**)(void))use)();
  return NULL;
}

/// In `processes` children, one after the other: prepare() if there is one; then a thread calls use(), and when it has been
/// at it for a while, step_us longer in each process, the process forks a child, which calls in_child(). Then the process
/// calls use() as well.
static void fork_beside_first_use(int processes, double step_us, void (*prepare)(void),
                                  void (*use)(void), void (*in_child)(void)) {
  for (int i = 0; i < processes; ++i) {
    const pid_t process = fork();
    if (process != 0) {
      wait_for_child(process, 0, "a process");
      continue;
    }
    arm_watchdog(40);
    if (prepare != NULL) prepare();
    pthread_t other;
    CHECK(pthread_create(&other, NULL, first_use_, &use) == 0, "no thread");
    while (!__atomic_load_n(&fork_first_begun_, __ATOMIC_ACQUIRE)) {
    }
    for (const double end = now_us_() + i * step_us; now_us_() < end;) {
    }
    const pid_t child = fork();
    if (child == 0) {
      arm_watchdog(30);
      in_child();
      _exit(0);
    }
    wait_for_child(child, 0, "a child");
    pthread_join(other, NULL);
    use();
    _exit(0);
  }
}
