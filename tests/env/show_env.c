// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints what OpenMP routines say about the environment; compare_env.py runs it on two runtimes.
#include <omp.h>
#include <stdio.h>
#include <string.h>

static void print_places(void) {
  int cpus[1024];
  printf("places %d:", omp_get_num_places());
  for (int place = 0; place < omp_get_num_places() && place < 64; place++) {
    const int n = omp_get_place_num_procs(place);
    if (n > 1024) return;
    omp_get_place_proc_ids(place, cpus);
    printf(" {");
    for (int i = 0; i < n; i++) printf(i == 0 ? "%d" : ",%d", cpus[i]);
    printf("}");
  }
  printf("\n");
}

int main(int argc, char** argv) {
  omp_sched_t kind;
  int chunk;
  omp_get_schedule(&kind, &chunk);
  printf("max_threads %d dynamic %d levels %d thread_limit %d\n", omp_get_max_threads(),
         omp_get_dynamic(), omp_get_max_active_levels(), omp_get_thread_limit());
  printf("schedule %x,%d bind %d cancellation %d device %d priority %d\n", (unsigned)kind, chunk,
         omp_get_proc_bind(), omp_get_cancellation(), omp_get_default_device(),
         omp_get_max_task_priority());
  printf("teams %d teams_limit %d allocator %lu procs %d\n", omp_get_max_teams(),
         omp_get_teams_thread_limit(), (unsigned long)omp_get_default_allocator(),
         omp_get_num_procs());
  print_places();
  fflush(stdout);
  // Formats from the command line; a malformed one ends the program.
  for (int i = 1; i < argc; i++) {
    char text[128];
    memset(text, '#', sizeof text);
    const size_t length = omp_capture_affinity(text, sizeof text, argv[i]);
    printf("[%.127s] %zu\n", text, length);
    fflush(stdout);
  }
  return 0;
}
