// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chains of `nowait` constructs: threads may be any number of constructs apart. And a million singles.
#include "check.h"

#include <omp.h>

enum { kLoops = 400, kWidth = 24 };

static int hits[kLoops][kWidth];
static int singles[kLoops], sections_run[kLoops][3];

/// Thread `slow` waits for the others, which run through the whole chain without it.
static void far_apart(int threads, int slow) {
  memset(hits, 0, sizeof hits);
  memset(singles, 0, sizeof singles);
  memset(sections_run, 0, sizeof sections_run);
  int finished = 0;
#pragma omp parallel num_threads(threads) shared(finished)
  {
    if (omp_get_thread_num() == slow) {
      while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < threads - 1) {
      }
    }
    for (int l = 0; l < kLoops; ++l) {
      switch (l % 5) {
        case 0:
#pragma omp for schedule(dynamic, 1) nowait
          for (int i = 0; i < kWidth; ++i) {
#pragma omp atomic
            hits[l][i]++;
          }
          break;
        case 1:
#pragma omp for schedule(guided) nowait
          for (long i = kWidth - 1; i >= 0; --i) {
#pragma omp atomic
            hits[l][i]++;
          }
          break;
        case 2:
#pragma omp single nowait
        {
#pragma omp atomic
          singles[l]++;
        } break;
        case 3:
#pragma omp sections nowait
        {
#pragma omp section
          {
#pragma omp atomic
            sections_run[l][0]++;
          }
#pragma omp section
          {
#pragma omp atomic
            sections_run[l][1]++;
          }
#pragma omp section
          {
#pragma omp atomic
            sections_run[l][2]++;
          }
        } break;
        default:
#pragma omp for schedule(runtime) nowait
          for (unsigned long long i = 0; i < kWidth; ++i) {
#pragma omp atomic
            hits[l][i]++;
          }
      }
    }
    __atomic_add_fetch(&finished, 1, __ATOMIC_ACQ_REL);
  }
  for (int l = 0; l < kLoops; ++l) {
    if (l % 5 == 2) {
      CHECK(singles[l] == 1, "single %d ran %d times", l, singles[l]);
    } else if (l % 5 == 3) {
      for (int i = 0; i < 3; ++i)
        CHECK(sections_run[l][i] == 1, "construct %d: section %d ran %d times", l, i,
              sections_run[l][i]);
    } else {
      for (int i = 0; i < kWidth; ++i)
        CHECK(hits[l][i] == 1, "construct %d: iteration %d ran %d times", l, i, hits[l][i]);
    }
  }
}

static void many_singles(int threads, long count) {
  long ran = 0;
#pragma omp parallel num_threads(threads) reduction(+ : ran)
  for (long i = 0; i < count; ++i) {
#pragma omp single nowait
    ran++;
  }
  CHECK(ran == count, "%ld of %ld singles ran", ran, count);
}

static void many_loops(int threads, long count) {
  long ran = 0;
#pragma omp parallel num_threads(threads) reduction(+ : ran)
  for (long i = 0; i < count; ++i) {
#pragma omp for schedule(dynamic, 1) nowait
    for (int k = 0; k < 3; ++k) ran += k;
  }
  CHECK(ran == 3 * count, "%ld of %ld", ran, 3 * count);
}

/// Static nowait loops of equal shape: each thread finds its own iterations' results in the next loop.
static void equal_static(int threads) {
  static double a[1000], b[1000], c[1000];
#pragma omp parallel num_threads(threads)
  for (int round = 0; round < 50; ++round) {
#pragma omp for schedule(static) nowait
    for (int i = 0; i < 1000; ++i) a[i] = i + round;
#pragma omp for schedule(static) nowait
    for (int i = 0; i < 1000; ++i) b[i] = 2 * a[i];
#pragma omp for schedule(static)
    for (int i = 0; i < 1000; ++i) {
      c[i] = a[i] + b[i];
      CHECK(c[i] == 3.0 * (i + round), "round %d: element %d is %g", round, i, c[i]);
    }
  }
}

int main(void) {
  omp_set_dynamic(0);
  int threads = omp_get_max_threads();
  for (int round = 0; round < 4; ++round) {
    far_apart(2, round % 2);
    far_apart(8, round * 2);
    if (threads > 1) far_apart(threads, threads - 1);
  }
  many_singles(1, 1000000);
  many_singles(2, 1000000);
  many_singles(8, 200000);
  many_loops(2, 100000);
  many_loops(8, 20000);
  equal_static(threads);
  equal_static(5);
  return passed();
}
