// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ordered regions with every schedule, iterations that skip theirs, and doacross loops in 1 and 2 dimensions.
#include "check.h"

#include <omp.h>

static int sequence[4096], used;

static void note(int i) {
  CHECK(used < 4096, "too many ordered regions");
  sequence[used++] = i;
}

static void in_order(int n, int step, const char* what) {
  CHECK(used == n, "%s: %d ordered regions, expected %d", what, used, n);
  for (int i = 0; i < n; ++i)
    CHECK(sequence[i] == i * step, "%s: position %d has iteration %d", what, i, sequence[i]);
  used = 0;
}

#define ORDERED_LOOP(SCHEDULE, TEXT)                                                     \
  static void TEXT(int threads, int n) {                                                 \
    _Pragma("omp parallel num_threads(threads)") {                                       \
      _Pragma(SCHEDULE) for (int i = 0; i < n; ++i) {                                    \
        volatile int spin = 0;                                                           \
        for (int k = 0; k < (i * 7) % 13 * 20; ++k) spin = spin + k;                     \
        _Pragma("omp ordered") note(i);                                                  \
      }                                                                                  \
    }                                                                                    \
    in_order(n, 1, #TEXT);                                                               \
    _Pragma("omp parallel num_threads(threads)") {                                       \
      _Pragma(SCHEDULE) for (long i = n; i > 0; --i) {                                   \
        if ((n - i) % 3 == 0) {                                                          \
          _Pragma("omp ordered") note((int)(n - i));                                     \
        }                                                                                \
      }                                                                                  \
    }                                                                                    \
    in_order((n + 2) / 3, 3, #TEXT " skipping");                                         \
    _Pragma("omp parallel num_threads(threads)") {                                       \
      _Pragma(SCHEDULE) for (unsigned long long i = 0; i < (unsigned long long)n; ++i) { \
        _Pragma("omp ordered") note((int)i);                                             \
      }                                                                                  \
    }                                                                                    \
    in_order(n, 1, #TEXT " ull");                                                        \
  }

ORDERED_LOOP("omp for ordered schedule(static)", ordered_static)
ORDERED_LOOP("omp for ordered schedule(static, 1)", ordered_static_1)
ORDERED_LOOP("omp for ordered schedule(static, 5)", ordered_static_5)
ORDERED_LOOP("omp for ordered schedule(dynamic)", ordered_dynamic)
ORDERED_LOOP("omp for ordered schedule(dynamic, 4)", ordered_dynamic_4)
ORDERED_LOOP("omp for ordered schedule(guided)", ordered_guided)
ORDERED_LOOP("omp for ordered schedule(runtime)", ordered_runtime)
ORDERED_LOOP("omp for ordered schedule(auto)", ordered_auto)

/// Nobody enters an ordered region at all, and several loops follow each other without a barrier.
static void none_and_chained(int threads) {
  int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
#pragma omp for ordered schedule(dynamic) nowait
    for (int i = 0; i < 50; ++i) {
      if (i < 0) {
#pragma omp ordered
        sum += 1000;
      }
      sum++;
    }
#pragma omp for ordered schedule(static, 2) nowait
    for (int i = 0; i < 50; ++i) {
#pragma omp ordered
      note(i);
    }
#pragma omp barrier
#pragma omp single
    in_order(50, 1, "chained");
#pragma omp for ordered schedule(guided)
    for (int i = 0; i < 50; ++i) {
#pragma omp ordered
      note(i);
    }
  }
  in_order(50, 1, "chained, second");
  CHECK(sum == 50, "%d iterations", sum);
}

static void doacross_line(int threads, int n) {
  unsigned long* value = calloc((size_t)n, sizeof *value);
  CHECK(value, "no memory");
#pragma omp parallel num_threads(threads)
  {
#pragma omp for ordered(1) schedule(static, 1)
    for (int i = 0; i < n; ++i) {
#pragma omp ordered depend(sink : i - 3)
      value[i] = i >= 3 ? value[i - 3] + (unsigned long)i : (unsigned long)i;
#pragma omp ordered depend(source)
    }
#pragma omp for ordered(1) schedule(dynamic, 2)
    for (int i = 0; i < n; ++i) {
#pragma omp ordered depend(sink : i - 1)
      value[i] += i > 0 ? value[i - 1] % 1000 : 0;
#pragma omp ordered depend(source)
    }
#pragma omp for ordered(1) schedule(guided)
    for (long i = 0; i < n; i += 1) {
#pragma omp ordered depend(sink : i - 2) depend(sink : i - 1)
      value[i] ^= i > 1 ? value[i - 1] + value[i - 2] : 5;
#pragma omp ordered depend(source)
    }
  }
  unsigned long* expected = calloc((size_t)n, sizeof *expected);
  CHECK(expected, "no memory");
  for (int i = 0; i < n; ++i)
    expected[i] = i >= 3 ? expected[i - 3] + (unsigned long)i : (unsigned long)i;
  for (int i = 0; i < n; ++i) expected[i] += i > 0 ? expected[i - 1] % 1000 : 0;
  for (int i = 0; i < n; ++i) expected[i] ^= i > 1 ? expected[i - 1] + expected[i - 2] : 5;
  for (int i = 0; i < n; ++i)
    CHECK(value[i] == expected[i], "doacross 1D: element %d is %lu, expected %lu", i, value[i],
          expected[i]);
  free(value);
  free(expected);
}

#define AT(array, r, c) array[(r) * (columns + 1) + (c)]

static void doacross_plane(int threads, int rows, int columns) {
  int size = (rows + 1) * (columns + 1);
  unsigned* value = calloc((size_t)size, sizeof *value);
  unsigned* expected = calloc((size_t)size, sizeof *expected);
  CHECK(value && expected, "no memory");
  for (int i = 0; i < size; ++i) value[i] = expected[i] = (unsigned)i * 2654435761u;
  for (int r = 1; r <= rows; ++r)
    for (int c = 1; c <= columns; ++c)
      AT(expected, r, c) += AT(expected, r - 1, c) * 3 + AT(expected, r, c - 1) * 5;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for ordered(2) schedule(static, 1)
    for (int r = 1; r <= rows; ++r)
      for (int c = 1; c <= columns; ++c) {
#pragma omp ordered depend(sink : r - 1, c) depend(sink : r, c - 1)
        AT(value, r, c) += AT(value, r - 1, c) * 3 + AT(value, r, c - 1) * 5;
#pragma omp ordered depend(source)
      }
  }
  for (int i = 0; i < size; ++i)
    CHECK(value[i] == expected[i], "doacross 2D: element %d is %u, expected %u", i, value[i],
          expected[i]);
  // The same with the outer loops collapsed, unsigned long long, and a dynamic schedule.
  for (int i = 0; i < size; ++i) value[i] = (unsigned)i * 2654435761u;
#pragma omp parallel for ordered(2) num_threads(threads) schedule(dynamic)
  for (unsigned long long r = 1; r <= (unsigned long long)rows; ++r)
    for (unsigned long long c = 1; c <= (unsigned long long)columns; ++c) {
#pragma omp ordered depend(sink : r - 1, c) depend(sink : r, c - 1)
      AT(value, r, c) += AT(value, r - 1, c) * 3 + AT(value, r, c - 1) * 5;
#pragma omp ordered depend(source)
    }
  for (int i = 0; i < size; ++i)
    CHECK(value[i] == expected[i], "doacross 2D ull: element %d is %u, expected %u", i, value[i],
          expected[i]);
  free(value);
  free(expected);
}

static void nested(void) {
  int done = 0;
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(3)
  {
    static int next[2];
    int team = omp_get_ancestor_thread_num(1);
#pragma omp single
    next[team] = 0;
#pragma omp for ordered schedule(dynamic)
    for (int i = 0; i < 60; ++i) {
#pragma omp ordered
      {
        CHECK(next[team] == i, "team %d: ordered region %d came at place %d", team, i, next[team]);
        next[team]++;
      }
    }
#pragma omp atomic
    done++;
  }
  CHECK(done == 6, "%d members", done);
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  int sizes[] = {omp_get_max_threads(), 1, 2, 8};
  for (int s = 0; s < 4; ++s) {
    int threads = sizes[s];
    int lengths[] = {0, 1, 3, 100, 500};
    for (int l = 0; l < 5; ++l) {
      int n = lengths[l];
      ordered_static(threads, n);
      ordered_static_1(threads, n);
      ordered_static_5(threads, n);
      ordered_dynamic(threads, n);
      ordered_dynamic_4(threads, n);
      ordered_guided(threads, n);
      ordered_runtime(threads, n);
      ordered_auto(threads, n);
    }
    none_and_chained(threads);
    doacross_line(threads, 200);
    doacross_line(threads, 60);
    doacross_line(threads, 2);
    doacross_plane(threads, 10, 12);
    doacross_plane(threads, 1, 1);
  }
  nested();
  return passed();
}
