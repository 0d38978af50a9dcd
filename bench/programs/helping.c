// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Does a second core help with short regions? Speed-up of regions of two working threads over one
// core that does the same work without OpenMP.
#include <omp.h>

#include "bench.h"

// A chain of dependent multiplications: no memory, no library call, nothing to vectorise.
__attribute__((noinline)) static void work(long steps) {
  unsigned long x = (unsigned long)steps;
  for (long i = 0; i < steps; i++) {
    x = x * 6364136223846793005UL + 1;
    __asm__ volatile("" : "+r"(x));
  }
}

static long steps;

static double serial(int shares, long count) {
  const double start = now_ns();
  for (long i = 0; i < count * shares; i++) work(steps);
  return now_ns() - start;
}

static double flat(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(2)
    work(steps);
  }
  return now_ns() - start;
}

// Every outer thread opens inner regions: both cores have work of their own.
static double nested(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
#pragma omp parallel num_threads(2)
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(2)
    work(steps);
  }
  return now_ns() - start;
}

// Only one outer thread opens inner regions; the other core must come and help with them.
static double nested_one(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
    for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(2)
      work(steps);
    }
  }
  return now_ns() - start;
}

// The fastest of many tries: other work on the machine only ever makes it slower.
static double ns_per_step(void) {
  const long tried = 200000;
  double best = 1e300;
  for (int i = 0; i < 15; i++) {
    const double start = now_ns();
    work(tried);
    const double took = now_ns() - start;
    if (took < best) best = took;
  }
  return best / (double)tried;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    BenchRun run;
    int shares;  // shares of work in one unit
  } cases[] = {{"flat", flat, 2}, {"nested", nested, 4}, {"nested-one", nested_one, 2}};
  if (argc < 3) bench_fail("usage: helping flat|nested|nested-one NS");
  const double share_ns = bench_int(argc, argv, 2);
  steps = (long)(share_ns / ns_per_step());
  if (steps < 1) steps = 1;
  omp_set_dynamic(0);
  omp_set_max_active_levels(4);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    if (strcmp(argv[1], cases[c].name) != 0) continue;
    const double sample = bench_sample_ns(), budget = bench_budget_ns(), start = now_ns();
    const long enough = (long)(sample / (share_ns * cases[c].shares)) + 1;
    double ratios[kBenchSamples];
    int taken = 0;
    long count = bench_warm_up(cases[c].run, NULL);
    if (count > enough) count = enough;
    while (taken < kBenchSamples) {  // in pairs, so that both see the same disturbance
      const double alone = serial(cases[c].shares, count);
      const double together = cases[c].run(NULL, count);
      const double spent = now_ns() - start;
      if (count < enough && together < sample / 2 && spent < budget) {
        count = bench_grow(count, together);
        if (count > enough) count = enough;
        taken = 0;
        continue;
      }
      ratios[taken++] = alone / together;
      if (spent + alone + together > budget) break;
    }
    bench_print(argv[1], bench_median(ratios, taken), "x");
    return 0;
  }
  bench_fail("helping: unknown case");
}
