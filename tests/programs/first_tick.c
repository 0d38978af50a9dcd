// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The first preemption of a process comes while its thread is inside malloc: the runtime must not need
// malloc itself then. Many processes, each with one first tick.
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t made;

static void* idle(void* unused) {
  (void)unused;
  pthread_barrier_wait(&made);
  pause();
  return NULL;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void child(void) {
  // With a second thread malloc takes its locks.
  pthread_t thread;
  pthread_barrier_init(&made, NULL, 2);
  CHECK(pthread_create(&thread, NULL, idle, NULL) == 0, "pthread_create");
  pthread_barrier_wait(&made);
  const double end = now() + 0.01;
  int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
  {
    do {
      for (size_t i = 1; i < 20; ++i) {
        char* block = aligned_alloc(4096, i * 4096);
        CHECK(block != NULL, "no memory");
        block[0] = 1;
        free(block);
      }
    } while (now() < end);
    ++members;
  }
  CHECK(members == 2, "%d members", members);
  _exit(0);
}

int main(void) {
  for (int i = 0; i < 40; ++i) {
    const pid_t pid = fork();
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) child();
    int status;
    CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d ended with status %x", i,
          (unsigned)status);
  }
  return passed();
}
