// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A second plug-in that uses OpenMP: tells what it sees of the region that it is called in, and opens one.
#include <omp.h>

struct View {
  int level, in_parallel, thread, threads, max_threads, members;
};

struct View inner_view(int threads);

struct View inner_view(int threads) {
  struct View view = {omp_get_level(),       omp_in_parallel(),     omp_get_thread_num(),
                      omp_get_num_threads(), omp_get_max_threads(), 0};
  int members = 0;
#pragma omp parallel num_threads(threads) reduction(+ : members)
  {
#pragma omp barrier
    members++;
  }
  view.members = members;
  return view;
}

/// Calls `function` in every member, inside of the critical region that all objects share.
void inner_critical(int threads, void (*function)(void));
void inner_critical(int threads, void (*function)(void)) {
#pragma omp parallel num_threads(threads)
#pragma omp critical(plugins)
  function();
}
