// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// taskloop: grain sizes, numbers of tasks, strict forms, directions, types, lastprivate, reductions, nogroup.
#include "check.h"

#include <limits.h>
#include <omp.h>

enum { kMax = 1200 };
static int hits[kMax];
static int task_of[kMax];
static int next_task;

static void once(int n, const char* what) {
  for (int i = 0; i < n; ++i) {
    CHECK(hits[i] == 1, "%s: iteration %d of %d ran %d times", what, i, n, hits[i]);
    hits[i] = 0;
  }
  for (int i = n; i < kMax; ++i) CHECK(!hits[i], "%s: iteration %d does not exist", what, i);
}

static void hit(long i) {
  CHECK(i >= 0 && i < kMax, "iteration %ld is outside", i);
#pragma omp atomic
  hits[i]++;
}

#define IN_REGION _Pragma("omp parallel num_threads(threads)") _Pragma("omp single")

static void forms(int threads, int n) {
  IN_REGION {
#pragma omp taskloop
    for (int i = 0; i < n; ++i) hit(i);
    once(n, "taskloop");
#pragma omp taskloop grainsize(7)
    for (long i = 0; i < n; ++i) hit(i);
    once(n, "grainsize(7)");
#pragma omp taskloop num_tasks(5)
    for (int i = n; i > 0; --i) hit(i - 1);
    once(n, "num_tasks(5), down");
#pragma omp taskloop grainsize(strict : 7)
    for (int i = 0; i < 3 * n; i += 3) hit(i / 3);
    once(n, "grainsize(strict:7)");
#pragma omp taskloop num_tasks(strict : 6)
    for (unsigned i = 0; i < (unsigned)n; ++i) hit(i);
    once(n, "num_tasks(strict:6)");
#pragma omp taskloop num_tasks(10000)
    for (unsigned long long i = ULLONG_MAX - (unsigned long long)n; i < ULLONG_MAX; ++i)
      hit((long)(i - (ULLONG_MAX - (unsigned long long)n)));
    once(n, "ull at its end");
#pragma omp taskloop grainsize(4)
    for (unsigned long long i = 5ULL * (unsigned long long)n; i > 0; i -= 5) hit((long)(i / 5 - 1));
    once(n, "ull down");
#pragma omp taskloop grainsize(3)
    for (long i = LONG_MAX - n; i < LONG_MAX; ++i) hit(i - (LONG_MAX - n));
    once(n, "long at its end");
#pragma omp taskloop if (0)
    for (int i = 0; i < n; ++i) hit(i);
    once(n, "if(0)");
#pragma omp taskloop final(1) priority(2) untied mergeable
    for (int i = 0; i < n; ++i) hit(i);
    once(n, "final");
#pragma omp taskloop simd grainsize(8)
    for (int i = 0; i < n; ++i) hits[i]++;
    once(n, "taskloop simd");
#pragma omp taskgroup
    {
#pragma omp taskloop nogroup grainsize(5)
      for (int i = 0; i < n; ++i) hit(i);
    }
    once(n, "nogroup in a taskgroup");
  }
  IN_REGION {
#pragma omp taskloop collapse(2) num_tasks(9)
    for (int i = 0; i < 12; ++i)
      for (long k = 20; k > 0; k -= 2) hit(i * 10 + (20 - k) / 2);
  }
  once(120, "collapse(2)");
  // Several taskloops at once, from all threads.
#pragma omp parallel num_threads(threads)
#pragma omp for schedule(static, 1)
  for (int part = 0; part < 10; ++part) {
#pragma omp taskloop grainsize(6)
    for (int i = part * 100; i < part * 100 + 100; ++i) hit(i);
  }
  once(1000, "taskloops of all threads");
}

/// Number and sizes of the tasks: each task is seen through a firstprivate that its first iteration fills.
static void shapes(int threads) {
  int counts[] = {1, 5, 64, 100, 999};
  for (int c = 0; c < 5; ++c) {
    int n = counts[c];
    for (int grain = 1; grain <= 40; grain = grain * 3 + 1) {
      for (int strict = 0; strict < 2; ++strict) {
        next_task = 0;
        IN_REGION {
          int mine = -1;
          if (strict) {
#pragma omp taskloop grainsize(strict : grain) firstprivate(mine)
            for (int i = 0; i < n; ++i) {
              if (mine < 0) mine = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED);
              task_of[i] = mine;
            }
          } else {
#pragma omp taskloop grainsize(grain) firstprivate(mine)
            for (int i = 0; i < n; ++i) {
              if (mine < 0) mine = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED);
              task_of[i] = mine;
            }
          }
        }
        int size = 1;
        for (int i = 1; i <= n; ++i, ++size) {
          if (i < n && task_of[i] == task_of[i - 1]) continue;
          int is_last = i == n;
          if (strict)
            CHECK(size == grain || (is_last && size <= grain),
                  "grainsize(strict:%d) of %d: a task of %d", grain, n, size);
          else
            CHECK((size >= grain || n < grain) && size < 2 * grain,
                  "grainsize(%d) of %d: a task of %d", grain, n, size);
          size = 0;
        }
        next_task = 0;
        IN_REGION {
          int mine = -1;
#pragma omp taskloop num_tasks(grain) firstprivate(mine)
          for (int i = 0; i < n; ++i) {
            if (mine < 0) mine = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED);
            task_of[i] = mine;
          }
        }
        int expected = grain < n ? grain : n;
        CHECK(next_task == expected, "num_tasks(%d) of %d: %d tasks", grain, n, next_task);
      }
    }
  }
}

static void values(int threads, int n) {
  long last = -1, sum = 10, in_task = 0;
  int first = 3;
  IN_REGION {
#pragma omp taskloop lastprivate(last) firstprivate(first) grainsize(4)
    for (long i = 0; i < n; ++i) last = i + first;
    CHECK(last == n + 2, "lastprivate: %ld", last);
#pragma omp taskloop lastprivate(last) num_tasks(3)
    for (long i = n; i > 0; i -= 2) last = i;
    CHECK(last == (n % 2 ? 1 : 2), "lastprivate, down: %ld", last);
#pragma omp taskloop reduction(+ : sum) grainsize(3)
    for (int i = 0; i < n; ++i) sum += i;
    CHECK(sum == 10 + (long)n * (n - 1) / 2, "reduction: %ld", sum);
#pragma omp taskgroup task_reduction(+ : in_task)
    {
#pragma omp taskloop in_reduction(+ : in_task) nogroup num_tasks(7)
      for (int i = 0; i < n; ++i) in_task += 2 * i;
#pragma omp task in_reduction(+ : in_task)
      in_task += 1000000;
    }
    CHECK(in_task == 1000000 + (long)n * (n - 1), "in_reduction: %ld", in_task);
    // No iterations at all.
    long none = 5;
#pragma omp taskloop reduction(+ : none)
    for (int i = n; i < n; ++i) none += 100;
#pragma omp taskloop
    for (int i = n; i < 0; ++i) none += 100;
#pragma omp taskloop
    for (unsigned long long i = 7; i < 7; ++i) none += 100;
    CHECK(none == 5, "an empty taskloop: %ld", none);
  }
}

int main(void) {
  omp_set_dynamic(0);
  int sizes[] = {omp_get_max_threads(), 1, 2, 8};
  for (int s = 0; s < 4; ++s) {
    int counts[] = {1, 2, 10, 500};
    for (int c = 0; c < 4; ++c) {
      forms(sizes[s], counts[c]);
      values(sizes[s], counts[c]);
    }
    shapes(sizes[s]);
  }
  return passed();
}
