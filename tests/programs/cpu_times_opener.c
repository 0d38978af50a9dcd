// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who opens a team has its own member's processor time only, whoever runs the others; and its time goes on over a fork, in the parent.
#define _GNU_SOURCE
#include "check.h"

#include <omp.h>
#include <sys/wait.h>
#include <time.h>

enum { MEMBERS = 8 };

static double mine(void) {
  struct timespec t;
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0, "clock_gettime: errno %d", errno);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(void) {
  for (volatile long i = 0; i < 60000000; ++i) {
  }
}

int main(void) {
  omp_set_max_active_levels(2);
  work();
  const double start = mine();
  work();
  const double alone = mine() - start;
#pragma omp parallel num_threads(2)
  {
    const double before = mine();
#pragma omp parallel num_threads(MEMBERS)
    work();
    const double took = mine() - before;
    CHECK(took > alone / 4 && took < 2.2 * alone,
          "member %d has computed for %.0f ms in a region of which each member takes %.0f",
          omp_get_thread_num(), 1e3 * took, 1e3 * alone);
  }
  const double before = mine();
  const pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    work();
    const double its = mine();
    _exit(its > alone / 4 && its < 2.2 * alone ? 0 : 1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
  CHECK(status == 0, "the child's time is not its own");
  CHECK(mine() >= before, "time went back");
  return passed();
}
