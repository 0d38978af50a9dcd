// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that is forked while another thread makes the first thread of bosk, and with it all that such threads
// need: the child makes its own.
#include "bosk_check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

enum { kProcesses = 12, kStepUs = 300 };

static int begun;

static void* same(void* argument) { return argument; }

static void use_one(void) {
  bosk_thread_t made;
  void* result = NULL;
  OK(bosk_thread_create(&made, NULL, same, &begun));
  OK(bosk_thread_join(made, &result));
  CHECK(result == &begun, "the thread ended with something else");
}

static void* first(void* argument) {
  __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
  use_one();
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
static void process(int number) {
  int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
  members += 1;  // OpenMP has been used before
  CHECK(members == 2, "%d members", members);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, first, NULL) == 0, "no thread");
  while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) {
  }
  for (const double end = now_us() + number * kStepUs; now_us() < end;) {
  }
  const pid_t pid = fork();
  if (pid == 0) {
    arm_watchdog(50);
    use_one();
    _exit(0);
  }
  wait_for(pid, "a child");
  pthread_join(other, NULL);
  use_one();
}

int main(void) {
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      arm_watchdog(55);
      process(i);
      _exit(0);
    }
    wait_for(pid, "a process");
  }
  return passed();
}
