// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members of nested teams fork, and their children have threads that come and go, so that the C library uses again, or gives back, the stacks
// of all who are not there any more; then they compute.
//   fork_stacks [OUTER]
#define _GNU_SOURCE
#include "hard.h"

#include <pthread.h>
#include <sys/wait.h>

enum { kInner = 4, kThreads = 12, kOutermost = 4, kRounds = 5, kRoom = 100 << 10 };

static void* thread(void* argument) {
  volatile char room[kRoom];
  for (int i = 0; i < kRoom; i += 8) room[i] = (char)i;
  pthread_barrier_wait(argument);
  for (int i = 0; i < kRoom; i += 8)
    CHECK(room[i] == (char)i, "somebody else wrote to a thread's stack");
  return NULL;
}

/// More than it keeps for the next ones.
static void come_and_go(void) {
  pthread_t threads[kThreads];
  pthread_barrier_t all;
  pthread_barrier_init(&all, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, thread, &all) == 0, "pthread_create");
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all);
}

static void child(void) {
  come_and_go();
  // Long enough to lose the processor, and to come back.
  for (int i = 0; i < 5; ++i) {
    compute(2);
    sched_yield();
  }
  _exit(7);
}

static void fork_one(void) {
  const pid_t process = fork();
  CHECK(process >= 0, "fork: errno %d", errno);
  if (process == 0) child();
  int status = 0;
  CHECK(waitpid(process, &status, 0) == process, "waitpid: errno %d", errno);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child ended with %#x", (unsigned)status);
}

int main(int argc, char** argv) {
  int outer = argc > 1 ? atoi(argv[1]) : omp_get_max_threads();
  if (outer > kOutermost) outer = kOutermost;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(outer)
  {
    // All of them have begun, and so have what they need.
#pragma omp parallel num_threads(kInner)
    {
#pragma omp barrier
      fork_one();
    }
    // Who opens the region has time for the others.
    for (int i = 0; i < kRounds; ++i) {
#pragma omp parallel num_threads(kInner)
      if (omp_get_thread_num() != 0) fork_one();
    }
  }
  return passed();
}
