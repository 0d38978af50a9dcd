// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions over tasks: taskgroup task_reduction, in_reduction, and reduction(task, ...) of regions,
// loops, sections and scopes.
#include "check.h"

#include <limits.h>
#include <omp.h>

static void in_group(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int round = 0; round < 10; ++round) {
    long sum = 7;
    int highest = -1;
    double product = 1.0;
#pragma omp taskgroup task_reduction(+ : sum) task_reduction(max : highest) \
    task_reduction(* : product)
    {
      for (int i = 0; i < 100; ++i) {
#pragma omp task in_reduction(+ : sum) in_reduction(max : highest) firstprivate(i)
        {
          sum += i;
          if (i > highest) highest = i;
          if (i % 10 == 0) {
#pragma omp task in_reduction(+ : sum)
            sum += 1000;
#pragma omp taskwait
          }
        }
      }
#pragma omp task in_reduction(* : product)
      product *= 8.0;
#pragma omp task in_reduction(* : product)
      product *= 0.5;
    }
    CHECK(sum == 7 + 4950 + 10000 && highest == 99 && product == 4.0, "task_reduction: %ld, %d, %g",
          sum, highest, product);
  }
}

static void nested_groups(int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
    long outer = 0, array[5] = {0};
#pragma omp taskgroup task_reduction(+ : outer, array)
    for (int i = 0; i < 8; ++i) {
#pragma omp task in_reduction(+ : outer, array) firstprivate(i)
      {
        long inner = 0;
#pragma omp taskgroup task_reduction(+ : inner)
        for (int k = 0; k < 8; ++k) {
#pragma omp task in_reduction(+ : inner, outer) firstprivate(k)
          {
            inner += k;
            outer += 1;
          }
        }
        CHECK(inner == 28, "inner taskgroup: %ld", inner);
        array[i % 5] += inner;
      }
    }
    CHECK(outer == 64, "outer taskgroup: %ld", outer);
    CHECK(array[0] == 56 && array[1] == 56 && array[2] == 56 && array[3] == 28 && array[4] == 28,
          "array: %ld %ld %ld %ld %ld", array[0], array[1], array[2], array[3], array[4]);
  }
}

static void whole_region(int threads) {
  long sum = 100, lowest = LONG_MAX;
#pragma omp parallel num_threads(threads) reduction(task, + : sum) reduction(task, min : lowest)
  {
    sum += 1;
    for (int i = 0; i < 20; ++i) {
#pragma omp task in_reduction(+ : sum) in_reduction(min : lowest) firstprivate(i)
      {
        sum += i;
        if (50 - i < lowest) lowest = 50 - i;
      }
    }
  }
  CHECK(sum == 100 + (1 + 190L) * threads && lowest == 31, "reduction(task) of a region: %ld, %ld",
        sum, lowest);
}

static void worksharing(int threads) {
  long sum = 0;
  int parts = 0;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for reduction(task, + : sum) schedule(dynamic, 3)
    for (int i = 0; i < 60; ++i) {
      sum += i;
#pragma omp task in_reduction(+ : sum) firstprivate(i)
      sum += 1000;
    }
    CHECK(sum == 1770 + 60000, "reduction(task) of a dynamic loop: %ld", sum);
#pragma omp barrier
#pragma omp for reduction(task, + : sum) schedule(static)
    for (int i = 0; i < 60; ++i) {
#pragma omp task in_reduction(+ : sum)
      sum += 1;
    }
    CHECK(sum == 1770 + 60060, "reduction(task) of a static loop: %ld", sum);
#pragma omp sections reduction(task, + : parts)
    {
#pragma omp section
      {
#pragma omp task in_reduction(+ : parts)
        parts += 5;
      }
#pragma omp section
      parts += 10;
    }
    CHECK(parts == 15, "reduction(task) of sections: %d", parts);
  }
}

/// Scopes around other worksharing constructs with reductions: the copies of an outer one stay until it
/// ends, however many constructs come inside.
static void scopes(long* sum, long product[2], long* bits) {
#pragma omp scope reduction(task, + : sum[ : 1])
  {
    sum[0] += 1;
#pragma omp scope reduction(task, * : product[ : 2])
    {
      if (omp_get_thread_num() < 4) product[1] *= 2;
#pragma omp scope reduction(task, | : bits[ : 1])
      {
        bits[0] |= 1;
#pragma omp sections
        {
#pragma omp section
          {
#pragma omp task in_reduction(| : bits[ : 1]) in_reduction(+ : sum[ : 1])
            {
              bits[0] |= 2;
              sum[0] += 10;
            }
          }
        }
      }
      if (omp_get_thread_num() < 4) {
#pragma omp task in_reduction(* : product[ : 2])
        product[1] *= 2;
      }
    }
    sum[0] += 100;
  }
}

static void inner_loops(long* sum, long* most) {
#pragma omp scope reduction(task, + : sum[ : 1])
  {
    for (int round = 0; round < 4; ++round) {
#pragma omp for schedule(dynamic, 2) reduction(task, max : most[ : 1])
      for (int i = 0; i < 20; ++i) {
#pragma omp task in_reduction(+ : sum[ : 1]) in_reduction(max : most[ : 1]) firstprivate(round, i)
        {
          sum[0] += i;
          if (most[0] < round * 100 + i) most[0] = round * 100 + i;
        }
      }
    }
  }
}

static void surrounding(int threads) {
  const long doubled = 1L << 2 * (threads < 4 ? threads : 4);
  long sum = 0, product[2] = {1, 1}, bits = 0, most = 0;
#pragma omp parallel num_threads(threads)
  scopes(&sum, product, &bits);
  CHECK(sum == 101 * threads + 10 && product[0] == 1 && product[1] == doubled && bits == 3,
        "scopes of %d threads: %ld, %ld, %ld, %ld", threads, sum, product[0], product[1], bits);
  sum = 0;
#pragma omp parallel num_threads(threads)
  inner_loops(&sum, &most);
  CHECK(sum == 4 * 190 && most == 319, "loops in scopes of %d threads: %ld, %ld", threads, sum,
        most);
}

typedef struct {
  int count;
  long total;
} Tally;

#pragma omp declare reduction(add:Tally : omp_out.count += omp_in.count, \
                                  omp_out.total += omp_in.total)         \
    initializer(omp_priv = (Tally){0, 0})

static void declared(int threads) {
  Tally tally = {0, 0};
#pragma omp parallel num_threads(threads)
#pragma omp single
#pragma omp taskloop reduction(add : tally) grainsize(2)
  for (int i = 0; i < 200; ++i) {
    tally.count++;
    tally.total += i;
  }
  CHECK(tally.count == 200 && tally.total == 19900, "declared: %d, %ld", tally.count, tally.total);
}

int main(void) {
  omp_set_dynamic(0);
  int sizes[] = {omp_get_max_threads(), 1, 2, 4, 8};
  for (int s = 0; s < 5; ++s)
    for (int round = 0; round < 10; ++round) {
      in_group(sizes[s]);
      nested_groups(sizes[s]);
      whole_region(sizes[s]);
      worksharing(sizes[s]);
      declared(sizes[s]);
      surrounding(sizes[s]);
    }
  return passed();
}
