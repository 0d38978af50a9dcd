// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions of every operator and type, array sections, user-declared ones, and inclusive and exclusive scans.
#include "check.h"

#include <complex.h>
#include <float.h>
#include <limits.h>
#include <omp.h>

static void operators(int threads, int n) {
  long sum = 5;
  unsigned product = 3, conjunction = ~0u, disjunction = 0, parity = 0xabc;
  int all = 1, any = 0, lowest = INT_MAX, highest = INT_MIN;
  double minimum = DBL_MAX, maximum = -DBL_MAX;
  float tiny = 0;
  long double wide = 0.5L;
  double complex z = 1.0 + 1.0 * I;
  unsigned char small = 0;
  long difference = 100;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 3)                             \
    reduction(+ : sum, tiny, wide, z, small) reduction(* : product) reduction(& : conjunction) \
    reduction(| : disjunction) reduction(^ : parity) reduction(&& : all) reduction(|| : any)   \
    reduction(min : lowest, minimum) reduction(max : highest, maximum) reduction(- : difference)
  for (int i = 0; i < n; ++i) {
    sum += i;
    product *= (unsigned)(2 * i + 1);
    conjunction &= ~(1u << (i % 20));
    disjunction |= 1u << (i % 25);
    parity ^= (unsigned)i * 77u;
    all = all && i >= 0;
    any = any || i == n - 1;
    int value = (i * 7919) % 1009 - 300;
    if (value < lowest) lowest = value;
    if (value > highest) highest = value;
    double real = value * 0.25;
    if (real < minimum) minimum = real;
    if (real > maximum) maximum = real;
    tiny += 1.0f;
    wide += 1.0L;
    z += 1.0 - 2.0 * I;
    small = (unsigned char)(small + 1);
    difference -= 1;
  }
  long sum2 = 5;
  unsigned product2 = 3, conjunction2 = ~0u, disjunction2 = 0, parity2 = 0xabc;
  int lowest2 = INT_MAX, highest2 = INT_MIN;
  for (int i = 0; i < n; ++i) {
    sum2 += i;
    product2 *= (unsigned)(2 * i + 1);
    conjunction2 &= ~(1u << (i % 20));
    disjunction2 |= 1u << (i % 25);
    parity2 ^= (unsigned)i * 77u;
    int value = (i * 7919) % 1009 - 300;
    if (value < lowest2) lowest2 = value;
    if (value > highest2) highest2 = value;
  }
  CHECK(sum == sum2 && product == product2, "sum %ld of %ld, product %u of %u", sum, sum2, product,
        product2);
  CHECK(conjunction == conjunction2 && disjunction == disjunction2 && parity == parity2,
        "bit operators: %x %x %x", conjunction, disjunction, parity);
  CHECK(all == 1 && any == (n > 0), "logical operators: %d %d", all, any);
  CHECK(lowest == lowest2 && highest == highest2, "min %d of %d, max %d of %d", lowest, lowest2,
        highest, highest2);
  if (n > 0)
    CHECK(minimum == lowest2 * 0.25 && maximum == highest2 * 0.25, "real min %g, max %g", minimum,
          maximum);
  CHECK(tiny == (float)n && wide == n + 0.5L && small == (unsigned char)n,
        "float %g, long double %Lg", tiny, wide);
  CHECK(creal(z) == 1.0 + n && cimag(z) == 1.0 - 2.0 * n, "complex %g + %gi", creal(z), cimag(z));
  CHECK(difference == 100 - n, "minus: %ld", difference);
}

static void arrays(int threads, int n) {
  int whole[17] = {0};
  double* part = calloc((size_t)n, sizeof *part);
  long plane[3][5] = {{0}};
  CHECK(part, "no memory");
#pragma omp parallel num_threads(threads)
  {
#pragma omp for reduction(+ : whole, part[2 : n - 4], plane[0 : 3][0 : 5]) schedule(static, 1)
    for (int i = 0; i < 340; ++i) {
      whole[i % 17] += i;
      part[2 + i % (n - 4)] += 1.0;
      plane[i % 3][i % 5] += i;
    }
#pragma omp barrier
    for (int i = 0; i < 17; ++i) {
      int expected = 0;
      for (int k = i; k < 340; k += 17) expected += k;
      CHECK(whole[i] == expected, "array: element %d is %d, expected %d", i, whole[i], expected);
    }
  }
  double total = 0;
  for (int i = 0; i < n; ++i) total += part[i];
  CHECK(total == 340 && part[0] == 0 && part[n - 1] == 0, "array section: %g", total);
  long plane_total = 0;
  for (int i = 0; i < 15; ++i) plane_total += plane[i / 5][i % 5];
  CHECK(plane_total == 340L * 339 / 2, "plane: %ld", plane_total);
  free(part);
}

typedef struct {
  int low, high;
  long count;
} Range;

static void merge(Range* into, const Range* from) {
  if (from->low < into->low) into->low = from->low;
  if (from->high > into->high) into->high = from->high;
  into->count += from->count;
}

#pragma omp declare reduction(merge:Range : merge(&omp_out, &omp_in)) \
    initializer(omp_priv = (Range){INT_MAX, INT_MIN, 0})

static void declared(int threads, int n) {
  Range range = {INT_MAX, INT_MIN, 0};
#pragma omp parallel num_threads(threads) reduction(merge : range)
  {
#pragma omp for schedule(guided)
    for (int i = 0; i < n; ++i) {
      Range one = {(i * 31) % 97, (i * 31) % 97, 1};
      merge(&range, &one);
    }
  }
  Range expected = {INT_MAX, INT_MIN, 0};
  for (int i = 0; i < n; ++i) {
    Range one = {(i * 31) % 97, (i * 31) % 97, 1};
    merge(&expected, &one);
  }
  CHECK(range.low == expected.low && range.high == expected.high && range.count == n,
        "declared: %d to %d, %ld", range.low, range.high, range.count);
}

static void scans(int threads, int n) {
  long* inclusive = malloc(sizeof(long) * (size_t)(n + 1));
  long* exclusive = malloc(sizeof(long) * (size_t)(n + 1));
  CHECK(inclusive && exclusive, "no memory");
  long running = 7;
#pragma omp parallel for num_threads(threads) reduction(inscan, + : running)
  for (int i = 0; i < n; ++i) {
    running += i % 11;
#pragma omp scan inclusive(running)
    inclusive[i] = running;
  }
  long after_inclusive = running;
  running = 7;
#pragma omp parallel num_threads(threads) shared(running)
  {
#pragma omp for reduction(inscan, + : running)
    for (int i = 0; i < n; ++i) {
      exclusive[i] = running;
#pragma omp scan exclusive(running)
      running += i % 11;
    }
  }
  long expected = 7;
  for (int i = 0; i < n; ++i) {
    CHECK(exclusive[i] == expected, "exclusive scan: element %d is %ld, expected %ld", i,
          exclusive[i], expected);
    expected += i % 11;
    CHECK(inclusive[i] == expected, "inclusive scan: element %d is %ld, expected %ld", i,
          inclusive[i], expected);
  }
  CHECK(running == expected && after_inclusive == expected, "scan totals %ld and %ld, expected %ld",
        running, after_inclusive, expected);
  free(inclusive);
  free(exclusive);
}

/// Reductions of a whole region, of nested regions, and of nowait loops that overlap.
static void regions(int threads) {
  long outer = 0;
#pragma omp parallel num_threads(threads) reduction(+ : outer)
  {
    long inner = 0;
#pragma omp parallel num_threads(3) reduction(+ : inner)
    inner += omp_get_thread_num() + 1;
    outer += inner * (omp_get_thread_num() + 1);
  }
  CHECK(outer == 6L * threads * (threads + 1) / 2, "nested reductions: %ld", outer);
  long a = 0, b = 0;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for reduction(+ : a) nowait schedule(dynamic)
    for (int i = 0; i < 100; ++i) a += i;
#pragma omp for reduction(+ : b) nowait schedule(dynamic)
    for (int i = 0; i < 100; ++i) b += 2 * i;
#pragma omp barrier
    CHECK(a == 4950 && b == 9900, "nowait reductions: %ld and %ld", a, b);
  }
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  int sizes[] = {omp_get_max_threads(), 1, 2, 3, 8};
  for (int s = 0; s < 5; ++s) {
    int threads = sizes[s];
    for (int round = 0; round < 10; ++round) {
      operators(threads, 500);
      operators(threads, 1);
      operators(threads, 0);
      arrays(threads, 40);
      declared(threads, 300);
      scans(threads, 1000);
      scans(threads, 3);
      scans(threads, 1);
      regions(threads);
    }
  }
  return passed();
}
