// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plug-in that uses OpenMP: regions, threadprivate (a TLS segment of its own), tasks, a lock.
#include <omp.h>
#include <stdlib.h>

static int calls = 500;
#pragma omp threadprivate(calls)

/// Returns the number of members that ran, or a negative number when something was wrong.
int plugin_run(int threads, int nested) {
  int members = 0, wrong = 0, tasks = 0;
  int before = omp_get_max_active_levels();
  omp_set_max_active_levels(3);
#pragma omp parallel num_threads(threads) reduction(+ : members, wrong) shared(tasks)
  {
    members++;
    calls += 1;
    if (calls < 501 || calls > 600) wrong++;
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < 10; ++i) {
#pragma omp task shared(tasks)
      {
#pragma omp atomic
        tasks++;
      }
    }
    if (nested) {
      int inner = 0;
#pragma omp parallel num_threads(3) reduction(+ : inner)
      {
        inner++;
        calls += 0;
      }
      if (inner != 3) wrong++;
    }
  }
  omp_set_max_active_levels(before);
  return wrong || tasks != 10 ? -1000 - wrong : members;
}

/// Runs a function of the program in a region of the plug-in.
void plugin_call_back(int threads, void (*function)(int)) {
#pragma omp parallel num_threads(threads)
  function(omp_get_thread_num());
}
