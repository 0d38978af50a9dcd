// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each pthread has settings of its own, which start as the process's and end with it. (Under valgrind: and
// leave no memory behind.)
#include "check.h"

#include <omp.h>
#include <pthread.h>

static int at_first;

static void* settings(void* argument) {
  const int mine = *(const int*)argument;
  CHECK(omp_get_max_threads() == at_first, "it starts with %d threads, not %d",
        omp_get_max_threads(), at_first);
  omp_set_num_threads(mine);
  omp_set_max_active_levels(2);
  int members = 0;
#pragma omp parallel
  {
#pragma omp parallel num_threads(2)
#pragma omp atomic
    members++;
    // The members' own copies.
    omp_set_num_threads(mine + 1 + omp_get_thread_num());
    CHECK(omp_get_max_threads() == mine + 1 + omp_get_thread_num(), "%d", omp_get_max_threads());
  }
  CHECK(members == 2 * mine, "%d members instead of %d", members, 2 * mine);
  CHECK(omp_get_max_threads() == mine, "%d instead of %d", omp_get_max_threads(), mine);
  return NULL;
}

int main(void) {
  enum { kRounds = 3, kThreads = 3 };
  at_first = omp_get_max_threads();
  for (int round = 0; round < kRounds; ++round) {
    pthread_t threads[kThreads];
    int numbers[kThreads];
    for (int i = 0; i < kThreads; ++i) {
      numbers[i] = 2 + i;
      CHECK(pthread_create(&threads[i], NULL, settings, &numbers[i]) == 0, "pthread_create");
    }
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  }
  CHECK(omp_get_max_threads() == at_first, "%d instead of %d", omp_get_max_threads(), at_first);
  return passed();
}
