// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cost of flat regions, barriers and the mutual exclusion constructs.
#include <omp.h>
#include <time.h>

#include "bench.h"

static int threads;
static volatile long shared_counter;

static double parallel(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
    BENCH_KEEP();
  }
  return now_ns() - start;
}

static double reduction(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
    long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
      BENCH_KEEP();
      sum += 1;
    }
    if (sum != threads) bench_fail("reduction: wrong sum");
  }
  return now_ns() - start;
}

// Thread 0 takes both times inside the region, after a first barrier: opening the region and
// waking its threads are not part of the figure.
#define INSIDE(name, statement)                        \
  static double name(void* unused, long count) {       \
    (void)unused;                                      \
    double start = 0, end = 0;                         \
    _Pragma("omp parallel num_threads(threads)") {     \
      _Pragma("omp barrier");                          \
      if (omp_get_thread_num() == 0) start = now_ns(); \
      for (long i = 0; i < count; i++) statement;      \
      _Pragma("omp barrier");                          \
      if (omp_get_thread_num() == 0) end = now_ns();   \
    }                                                  \
    return end - start;                                \
  }

static omp_lock_t lock;

static inline void do_barrier(void) {
#pragma omp barrier
  BENCH_KEEP();
}

static inline void do_single(void) {
#pragma omp single
  BENCH_KEEP();
}

static inline void do_critical(void) {
#pragma omp critical
  shared_counter = shared_counter + 1;
}

static inline void do_atomic(void) {
#pragma omp atomic
  shared_counter += 1;
}

static inline void do_lock(void) {
  omp_set_lock(&lock);
  shared_counter = shared_counter + 1;
  omp_unset_lock(&lock);
}

INSIDE(barrier, do_barrier())
INSIDE(single, do_single())
INSIDE(critical, do_critical())
INSIDE(atomic, do_atomic())
INSIDE(locked, do_lock())

static double region_after_idle(void* idle, long count) {
  double took = 0;
  for (long i = 0; i < count; i++) {
    nanosleep(idle, NULL);
    took += parallel(NULL, 1);
  }
  return took;
}

// The region alone, after `idle_us` in which the program asks nothing of the runtime. The warm-up is the
// same: for some 50 ms after both CPUs were busy (with regions back to back, say) the kernel places a
// thread that it wakes differently, and a region takes four times as long on every runtime.
static double after_idle(int idle_us) {
  enum { kMost = 2000 };
  static double times[kMost];
  struct timespec idle = {0, idle_us * 1000L};
  bench_warm_up(region_after_idle, &idle);
  const double begin = now_ns(), enough = bench_sample_ns() * (kBenchSamples + 1);
  int taken = 0;
  while (taken < kMost && (taken < 20 || now_ns() - begin < enough)) {
    times[taken++] = region_after_idle(&idle, 1);
  }
  return bench_median(times, taken);
}

static void check_team(void) {
  int size = 0;
#pragma omp parallel num_threads(threads)
  {
#pragma omp atomic
    size++;
  }
  if (size != threads) bench_fail("the runtime did not give the team asked for");
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    BenchRun run;
    int per_thread;  // every thread does each unit: the figure is per execution, not per round
  } cases[] = {{"parallel", parallel, 0},  {"barrier", barrier, 0}, {"single", single, 0},
               {"critical", critical, 1},  {"lock", locked, 1},     {"atomic", atomic, 1},
               {"reduction", reduction, 0}};
  if (argc < 3) bench_fail("usage: sync CASE THREADS [IDLE_US]");
  threads = bench_int(argc, argv, 2);
  omp_set_dynamic(0);
  omp_init_lock(&lock);
  check_team();
  if (strcmp(argv[1], "after-idle") == 0) {
    bench_print(argv[1], after_idle(bench_int(argc, argv, 3)), "ns");
    return 0;
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    const double ns = bench_measure(cases[i].run, NULL);
    bench_print(argv[1], cases[i].per_thread ? ns / threads : ns, "ns");
    return 0;
  }
  bench_fail("sync: unknown case");
}
