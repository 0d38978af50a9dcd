// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks of a team of one that spin for one another and open parallel regions: several contexts of one
// thread then have regions open at once. Needs a runtime that can set a spinning task aside (stock libgomp
// cannot).
#include "check.h"

#include <omp.h>

enum { kTasks = 3, kRegions = 12 };

static int flags[kTasks];

static void check_region(int size, int round, int task) {
  long sum = 0;
#pragma omp parallel num_threads(size) reduction(+ : sum)
  {
    sum += omp_get_num_threads();
#pragma omp barrier
    sum += omp_get_thread_num();
  }
  CHECK(sum == size * size + size * (size - 1) / 2, "round %d, task %d: %ld", round, task, sum);
}

/// Task i spins until task i + step has opened half of its regions.
static void chain(int round, int step) {
  int done = 0;
  memset(flags, 0, sizeof flags);
#pragma omp parallel num_threads(1)
  for (int i = 0; i < kTasks; ++i) {
#pragma omp task firstprivate(i) shared(done)
    {
      int other = i + step;
      if (other >= 0 && other < kTasks)
        while (!__atomic_load_n(&flags[other], __ATOMIC_ACQUIRE)) {
        }
      for (int k = 0; k < kRegions; ++k) {
        check_region(1 + k % 3, round, i);
        if (k == kRegions / 2) __atomic_store_n(&flags[i], 1, __ATOMIC_RELEASE);
      }
      CHECK(omp_get_thread_num() == 0 && omp_get_num_threads() == 1, "task %d: thread %d of %d", i,
            omp_get_thread_num(), omp_get_num_threads());
      done++;
    }
  }
  CHECK(done == kTasks, "%d of %d tasks ran", done, kTasks);
}

int main(void) {
  omp_set_dynamic(0);
  for (int round = 0; round < 20; ++round) {
    check_region(3, round, -1);
    chain(round, round % 2 ? 1 : -1);
  }
  return passed();
}
