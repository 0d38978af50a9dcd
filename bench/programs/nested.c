// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cost of nested, varying and recursive parallel regions. Compiled twice: with BENCH_TLS the
// inner regions use a thread-local variable, so the program has a TLS segment.
#include <omp.h>

#include "bench.h"

#ifdef BENCH_TLS
static __thread volatile long touched;
#define BODY() (touched = touched + 1)
#else
#define BODY() BENCH_KEEP()
#endif

typedef struct {
  int outer, first, second;  // the inner size alternates between first and second
} Shape;

static double nested(void* context, long count) {
  const Shape shape = *(const Shape*)context;
  const double start = now_ns();
#pragma omp parallel num_threads(shape.outer)
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(shape.first)
    BODY();
  }
  return now_ns() - start;
}

static double nested_once(void* context, long count) {
  const Shape shape = *(const Shape*)context;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(shape.outer)
    {
#pragma omp parallel num_threads(shape.first)
      BODY();
    }
  }
  return now_ns() - start;
}

static double nested_barrier(void* context, long count) {
  const Shape shape = *(const Shape*)context;
  const double start = now_ns();
#pragma omp parallel num_threads(shape.outer)
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(shape.first)
    {
      BODY();
#pragma omp barrier
      BODY();
    }
  }
  return now_ns() - start;
}

// One unit is a pair of regions, so that a sample always holds as many of each size.
static double varying_flat(void* context, long count) {
  const Shape shape = *(const Shape*)context;
  const double start = now_ns();
  for (long i = 0; i < 2 * count; i++) {
#pragma omp parallel num_threads(i % 2 == 0 ? shape.first : shape.second)
    BODY();
  }
  return now_ns() - start;
}

static double varying_nested(void* context, long count) {
  const Shape shape = *(const Shape*)context;
  const double start = now_ns();
#pragma omp parallel num_threads(shape.outer)
  for (long i = 0; i < 2 * count; i++) {
#pragma omp parallel num_threads(i % 2 == 0 ? shape.first : shape.second)
    BODY();
  }
  return now_ns() - start;
}

static long fib(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
#pragma omp parallel num_threads(2) shared(a, b)
  {
    BODY();
    if (omp_get_thread_num() == 0)
      a = fib(n - 1);
    else
      b = fib(n - 2);
  }
  return a + b;
}

static long fib_plain(int n) { return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2); }

static double fib_run(void* context, long count) {
  const int n = *(const int*)context;
  const long expected = fib_plain(n);
  const double start = now_ns();
  for (long i = 0; i < count; i++)
    if (fib(n) != expected) bench_fail("fib: a region was not run by two threads");
  return now_ns() - start;
}

// A runtime that gives smaller teams than asked for would look fast: refuse its figures.
static void check_teams(int outer, int inner) {
  long members = 0;
#pragma omp parallel num_threads(outer) reduction(+ : members)
  {
    long inside = 0;
#pragma omp parallel num_threads(inner) reduction(+ : inside)
    if (omp_get_num_threads() == inner) inside++;
    members += inside;
  }
  if (members != (long)outer * inner) bench_fail("the runtime did not give the teams asked for");
}

static void check_flat(int size) {
  long members = 0;
#pragma omp parallel num_threads(size) reduction(+ : members)
  if (omp_get_num_threads() == size) members++;
  if (members != size) bench_fail("the runtime did not give the team asked for");
}

int main(int argc, char** argv) {
  if (argc < 2) bench_fail("usage: nested CASE NUMBERS…");
  const char* what = argv[1];
  omp_set_dynamic(0);
  omp_set_max_active_levels(64);

  if (strcmp(what, "fib") == 0) {
    int n = bench_int(argc, argv, 2);
    const long regions = fib_plain(n + 1) - 1;
    bench_print("fib", bench_measure(fib_run, &n) / (double)regions / 1e3, "us");
    return 0;
  }
  if (strcmp(what, "varying-flat") == 0) {
    Shape shape = {1, bench_int(argc, argv, 2), bench_int(argc, argv, 3)};
    check_flat(shape.first);
    check_flat(shape.second);
    bench_print(what, bench_measure(varying_flat, &shape) / 2e3, "us");
    return 0;
  }
  if (strcmp(what, "varying-nested") == 0) {
    Shape shape = {2, bench_int(argc, argv, 2), bench_int(argc, argv, 3)};
    check_teams(shape.outer, shape.first);
    check_teams(shape.outer, shape.second);
    bench_print(what, bench_measure(varying_nested, &shape) / shape.outer / 2e3, "us");
    return 0;
  }

  BenchRun run = strcmp(what, "nested") == 0           ? nested
                 : strcmp(what, "nested-once") == 0    ? nested_once
                 : strcmp(what, "nested-barrier") == 0 ? nested_barrier
                                                       : NULL;
  if (run == NULL) bench_fail("nested: unknown case");
  const int size = bench_int(argc, argv, 2);
  Shape shape = {size, size, size};
  check_teams(size, size);
  bench_print(what, bench_measure(run, &shape) / size / 1e3, "us");
  return 0;
}
