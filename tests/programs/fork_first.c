// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that is forked while another pthread is in the process's first call of OpenMP: what that call sets up
// for the process, the child finds whole or sets up itself. Arguments: processes, microseconds from one to the next.
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static int begun;

static void open_region(void) {
  int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
  members += 1;
  CHECK(members == 2, "%d members", members);
}

static void* first(void* argument) {
  __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
  open_region();
  return argument;
}

static void wait_for(pid_t pid, const char* what) {
  CHECK(pid > 0, "fork: errno %d", errno);
  int status = -1;
  while (waitpid(pid, &status, 0) != pid) CHECK(errno == EINTR, "waitpid: errno %d", errno);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with status %x", what, status);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/// Forks when the other thread has been at it for a while, another one in each process.
static void process(double delay_us) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, first, NULL) == 0, "no thread");
  while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) {
  }
  for (const double end = now_us() + delay_us; now_us() < end;) {
  }
  const pid_t pid = fork();
  if (pid == 0) {
    arm_watchdog(20);
    open_region();
    // The child of a child: what the first did about the fork is done once.
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      arm_watchdog(15);
      open_region();
      _exit(0);
    }
    wait_for(grandchild, "a grandchild");
    _exit(0);
  }
  wait_for(pid, "a child");
  pthread_join(other, NULL);
  open_region();
}

int main(int argc, char** argv) {
  CHECK(argc == 3, "usage: fork_first PROCESSES MICROSECONDS");
  const int processes = atoi(argv[1]);
  const double step_us = atof(argv[2]);
  for (int i = 0; i < processes; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      arm_watchdog(30);
      process(i * step_us);
      _exit(0);
    }
    wait_for(pid, "a process");
  }
  return passed();
}
