// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The first regions of a process are nested, and their members have data of their own (threadprivate): all identities are made while
// all members already wait for some. In children, one after the other, beside processes that want the CPUs.
#include "check.h"

#include <omp.h>
#include <signal.h>
#include <sys/wait.h>

enum { kChildren = 200, kBusy = 2 };

static int mine;
#pragma omp threadprivate(mine)

static void nested(int outer, int inner) {
  int members = 0, tasks = 0;
#pragma omp parallel num_threads(outer) shared(members, tasks)
  {
    mine++;
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < 10; ++i)
#pragma omp task shared(tasks)
      __atomic_add_fetch(&tasks, 1, __ATOMIC_RELAXED);
#pragma omp parallel num_threads(inner) shared(members)
    {
      if (omp_get_thread_num() != 0) {
        CHECK(mine == 0, "a new thread found %d", mine);
        mine = 1;
      }
#pragma omp atomic
      members++;
      if (omp_get_thread_num() != 0) mine = 0;
    }
  }
  CHECK(members == outer * inner && tasks == 10, "%d members, %d tasks", members, tasks);
}

int main(void) {
  pid_t busy[kBusy];
  for (int i = 0; i < kBusy; ++i) {
    busy[i] = fork();
    CHECK(busy[i] >= 0, "fork failed");
    if (busy[i] == 0) {
      arm_watchdog(60);
      for (;;) continue;
    }
  }
  omp_set_max_active_levels(2);
  for (int round = 0; round < kChildren; ++round) {
    const pid_t child = fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0) {
      arm_watchdog(20);
      for (int size = 2; size <= 8; size += 3) nested(size, 3);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child %d: status %x", round, status);
  }
  for (int i = 0; i < kBusy; ++i) {
    kill(busy[i], SIGKILL);
    waitpid(busy[i], NULL, 0);
  }
  return passed();
}
