// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a runtime that cannot multiplex threads says about it: how often, and when.
//   fallback_line flat|nested LINES
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

static pthread_barrier_t together;

static int nested_members(void) {
  int members = 0;
#pragma omp parallel num_threads(3)
#pragma omp parallel num_threads(4)
  {
#pragma omp barrier
#pragma omp critical
    members++;
  }
  return members;
}

static int flat_members(void) {
  int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
  {
#pragma omp barrier
    members++;
  }
  return members;
}

static void* nested_by_pthread(void* argument) {
  (void)argument;
  // All meet the question for the first time together.
  pthread_barrier_wait(&together);
  int inner = 0;
#pragma omp parallel num_threads(16) reduction(+ : inner)
  inner++;
  CHECK(inner == 16, "a team of %d", inner);
  return NULL;
}

static void nested_everywhere(void) {
  enum { kThreads = 4 };
  pthread_t threads[kThreads];
  pthread_barrier_init(&together, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, nested_by_pthread, NULL) == 0, "pthread_create");
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int round = 0; round < 3; ++round) CHECK(nested_members() == 12, "wrong number of members");
  const pid_t child = fork();
  CHECK(child >= 0, "fork: errno %d", errno);
  if (child == 0) {
    arm_watchdog(30);
    _exit(nested_members() == 12 ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x",
        (unsigned)status);
}

int main(int argc, char** argv) {
  CHECK(argc == 3, "two arguments");
  const int wanted = atoi(argv[2]);
  const int real = dup(STDERR_FILENO);
  const int caught = memfd_create("stderr", 0);
  CHECK(real >= 0 && caught >= 0 && dup2(caught, STDERR_FILENO) >= 0, "dup2: errno %d", errno);
  omp_set_max_active_levels(2);
  if (strcmp(argv[1], "flat") == 0) {
    for (int round = 0; round < 10; ++round) CHECK(flat_members() == 2, "wrong number of members");
  } else {
    nested_everywhere();
  }
  dup2(real, STDERR_FILENO);

  static char said[4096];
  const ssize_t length = pread(caught, said, sizeof said - 1, 0);
  CHECK(length >= 0, "pread: errno %d", errno);
  int lines = 0, ours = 0;
  for (char* line = strtok(said, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    ++lines;
    ours +=
        strncmp(line, "bosk: cannot give user-level threads identities of their own (", 62) == 0 &&
        strstr(line, "; using one kernel thread per OpenMP thread") != NULL;
  }
  CHECK(lines == wanted && ours == wanted, "%d lines, %d of them the right one; the last: %s",
        lines, ours, lines != 0 ? said : "");
  return passed();
}
