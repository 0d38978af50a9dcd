// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clock, sampling and output shared by the benchmark programs (C and C++).
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBenchSamples = 5 };

static inline double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// run.py sets both; the defaults are for a program started by hand.
static inline double bench_env_ns(const char* name, double default_ms) {
  const char* text = getenv(name);
  const double ms = text != NULL ? atof(text) : 0;
  return (ms > 0 ? ms : default_ms) * 1e6;
}

static inline double bench_sample_ns(void) { return bench_env_ns("BENCH_SAMPLE_MS", 12); }

static inline double bench_budget_ns(void) { return bench_env_ns("BENCH_BUDGET_MS", 400); }

static inline double bench_warm_ns(void) { return bench_env_ns("BENCH_WARM_MS", 30); }

static inline int bench_compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Sorts `values`.
static inline double bench_median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, bench_compare);
  return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

// Does `count` units of work and returns the ns that they took.
typedef double (*BenchRun)(void* context, long count);

// The count for the next sample, given that `count` units took `took` ns.
static inline long bench_grow(long count, double took) {
  const double grow = bench_sample_ns() * 1.2 / (took > 1 ? took : 1);
  return grow > 10 ? count * 10 : (long)((double)count * grow) + 1;
}

// Runs until threads that just started have had time to leave the CPU that they were born on: for
// the kernel's load balancer that takes 10-20 ms, in which two spinning threads share one CPU. The
// count grows on the way and is returned.
static inline long bench_warm_up(BenchRun run, void* context) {
  const double start = now_ns(), warm = bench_warm_ns();
  long count = 1;
  for (;;) {
    const double took = run(context, count);
    if (now_ns() - start >= warm) return count;
    if (took < bench_sample_ns() / 2) count = bench_grow(count, took);
  }
}

// Median ns per unit. The count grows until a sample is long enough to trust, and sampling starts
// again when one turns out short (the count stems from a disturbed moment). A runtime so slow that
// one unit fills the time budget is not waited for any longer; but the cold first unit (thread
// creation) is the result only if it alone used up the budget.
static inline double bench_measure(BenchRun run, void* context) {
  const double sample = bench_sample_ns(), budget = bench_budget_ns();
  const double start = now_ns();
  double took = run(context, 1);
  if (took > budget) return took;
  long count = bench_warm_up(run, context);
  double samples[kBenchSamples];
  int taken = 0;
  while (taken < kBenchSamples) {
    if (taken > 0 && now_ns() - start + took > budget) break;
    took = run(context, count);
    if (took < sample / 2 && now_ns() - start < budget) {
      count = bench_grow(count, took);
      taken = 0;
      continue;
    }
    samples[taken++] = took / (double)count;
  }
  return bench_median(samples, taken);
}

static inline void bench_print(const char* name, double value, const char* unit) {
  printf("%s %.6g %s\n", name, value, unit);
}

static inline void bench_fail(const char* what) {
  fprintf(stderr, "bench: %s\n", what);
  exit(1);
}

static inline int bench_int(int argc, char** argv, int index) {
  const int value = index < argc ? atoi(argv[index]) : 0;
  if (value <= 0) bench_fail("a case lacks a positive number; see rows.py for the cases");
  return value;
}

// Keeps an otherwise empty body: compilers may delete a region without side effects.
#define BENCH_KEEP() __asm__ volatile("" ::: "memory")
