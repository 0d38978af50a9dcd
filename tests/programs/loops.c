// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Worksharing loops: every schedule, chunk, direction and type; each iteration runs exactly once.
#include "check.h"

#include <limits.h>
#include <omp.h>

enum { kMax = 2048 };

static int hits[kMax];
static int threads;

static void once(long n, const char* what) {
  for (long i = 0; i < n; ++i) {
    CHECK(hits[i] == 1, "%s, %d threads: iteration %ld of %ld ran %d times", what, threads, i, n,
          hits[i]);
    hits[i] = 0;
  }
  for (long i = n; i < kMax; ++i) CHECK(hits[i] == 0, "%s: iteration %ld does not exist", what, i);
}

static void hit(long i) {
  CHECK(i >= 0 && i < kMax, "iteration index %ld is outside", i);
#pragma omp atomic
  hits[i]++;
}

// One loop per schedule, over `n` iterations written in several ways.
#define ALL_FORMS(SCHEDULE, TEXT)                                                               \
  static void TEXT##_forms(long n, int chunk) {                                                 \
    (void)chunk;                                                                                \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (long i = 0; i < n; ++i) hit(i);                                    \
    }                                                                                           \
    once(n, #TEXT " long");                                                                     \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (int i = (int)n; i > 0; --i) hit(i - 1);                            \
    }                                                                                           \
    once(n, #TEXT " int down");                                                                 \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (long i = -3 * n; i < 0; i += 3) hit((i + 3 * n) / 3);              \
    }                                                                                           \
    once(n, #TEXT " step 3");                                                                   \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (long i = 7 * n; i > 0; i -= 7) hit((7 * n - i) / 7);               \
    }                                                                                           \
    once(n, #TEXT " step -7");                                                                  \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (unsigned i = 5; i < 5 + (unsigned)n; ++i) hit((long)i - 5);        \
    }                                                                                           \
    once(n, #TEXT " unsigned");                                                                 \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (unsigned long long i = ULLONG_MAX - (unsigned long long)n;         \
                             i < ULLONG_MAX; ++i)                                               \
          hit((long)(i - (ULLONG_MAX - (unsigned long long)n)));                                \
    }                                                                                           \
    once(n, #TEXT " ull at its end");                                                           \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (unsigned long long i = 3 * (unsigned long long)n; i > 0; i -= 3)   \
          hit((long)(i / 3 - 1));                                                               \
    }                                                                                           \
    once(n, #TEXT " ull down");                                                                 \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (long i = LONG_MAX - n; i < LONG_MAX; ++i) hit(i - (LONG_MAX - n)); \
    }                                                                                           \
    once(n, #TEXT " long at its end");                                                          \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (long i = LONG_MIN + n; i > LONG_MIN; --i) hit(LONG_MIN + n - i);   \
    }                                                                                           \
    once(n, #TEXT " long at its beginning");                                                    \
    _Pragma("omp parallel num_threads(threads)") {                                              \
      _Pragma(SCHEDULE) for (short i = -100; i < -100 + (n < 200 ? n : 200); ++i) hit(i + 100); \
    }                                                                                           \
    once(n < 200 ? n : 200, #TEXT " short");                                                    \
  }

ALL_FORMS("omp for schedule(static)", static_plain)
ALL_FORMS("omp for schedule(static, chunk)", static_chunk)
ALL_FORMS("omp for schedule(dynamic)", dynamic_plain)
ALL_FORMS("omp for schedule(dynamic, chunk)", dynamic_chunk)
ALL_FORMS("omp for schedule(monotonic:dynamic, chunk)", monotonic_dynamic)
ALL_FORMS("omp for schedule(nonmonotonic:dynamic, chunk)", nonmonotonic_dynamic)
ALL_FORMS("omp for schedule(guided)", guided_plain)
ALL_FORMS("omp for schedule(guided, chunk)", guided_chunk)
ALL_FORMS("omp for schedule(monotonic:guided, chunk)", monotonic_guided)
ALL_FORMS("omp for schedule(auto)", automatic)
ALL_FORMS("omp for schedule(runtime)", runtime_plain)
ALL_FORMS("omp for schedule(monotonic:runtime)", runtime_monotonic)
ALL_FORMS("omp for schedule(nonmonotonic:runtime)", runtime_nonmonotonic)

static void all_schedules(long n, int chunk) {
  static_plain_forms(n, chunk);
  // The compiler computes static chunks itself, and its sums may overflow: not the runtime's affair.
  if (chunk < 1000) static_chunk_forms(n, chunk);
  dynamic_plain_forms(n, chunk);
  dynamic_chunk_forms(n, chunk);
  monotonic_dynamic_forms(n, chunk);
  nonmonotonic_dynamic_forms(n, chunk);
  guided_plain_forms(n, chunk);
  guided_chunk_forms(n, chunk);
  monotonic_guided_forms(n, chunk);
  automatic_forms(n, chunk);
}

static void runtime_schedules(long n) {
  static const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided,
                                      omp_sched_auto};
  static const int chunks[] = {0, 1, 5, 1000000};
  for (int k = 0; k < 4; ++k)
    for (int c = 0; c < 4; ++c)
      for (int monotonic = 0; monotonic < 2; ++monotonic) {
        omp_set_schedule(monotonic ? (omp_sched_t)(kinds[k] | omp_sched_monotonic) : kinds[k],
                         chunks[c]);
        runtime_plain_forms(n, 0);
        runtime_monotonic_forms(n, 0);
        runtime_nonmonotonic_forms(n, 0);
      }
}

/// A monotonic schedule gives each thread its iterations in rising order.
static void monotonic_order(void) {
#pragma omp parallel num_threads(threads)
  {
    long before = -1;
#pragma omp for schedule(monotonic : dynamic, 3)
    for (long i = 0; i < 1000; ++i) {
      CHECK(i > before, "monotonic: iteration %ld after %ld", i, before);
      before = i;
    }
    before = -1;
#pragma omp for schedule(static, 4)
    for (long i = 0; i < 1000; ++i) {
      CHECK(i > before, "static: iteration %ld after %ld", i, before);
      CHECK(i / 4 % threads == omp_get_thread_num(),
            "static,4: iteration %ld ran on thread %d of %d", i, omp_get_thread_num(), threads);
      before = i;
    }
  }
}

/// The chunks of dynamic,c begin at multiples of c, and one thread runs each whole chunk.
static void chunk_shape(void) {
  static int owner[1000];
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(dynamic, 9)
    for (int i = 0; i < 1000; ++i) owner[i] = omp_get_thread_num();
  }
  for (int i = 0; i < 1000; ++i)
    CHECK(owner[i] == owner[i / 9 * 9], "dynamic,9: iteration %d and %d ran on different threads",
          i, i / 9 * 9);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(guided, 16)
    for (int i = 0; i < 1000; ++i) owner[i] = omp_get_thread_num();
  }
  for (int i = 0; i < 16; ++i)
    CHECK(owner[i] == owner[0], "guided,16: the first chunk is shorter than 16");
}

/// Extreme distances: few iterations over the whole range of the type.
static void whole_range(void) {
  int count = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(+ : count)
  for (unsigned long long i = 0; i < ULLONG_MAX - (1ULL << 60); i += 1ULL << 60) count++;
  CHECK(count == 15, "ull over its range: %d iterations, expected 15", count);
  count = 0;
#pragma omp parallel for num_threads(threads) schedule(guided) reduction(+ : count)
  for (long i = -(1L << 61); i < 1L << 61; i += 1L << 57) count++;
  CHECK(count == 32, "long over half its range: %d iterations, expected 32", count);
  count = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 5) reduction(+ : count)
  for (unsigned long long i = ULLONG_MAX; i > 1ULL << 62; i -= 1ULL << 60) count++;
  CHECK(count == 12, "ull down: %d iterations, expected 12", count);
  count = 0;
  long huge = LONG_MAX / 2;
#pragma omp parallel for num_threads(threads) schedule(dynamic, huge) reduction(+ : count)
  for (long i = 0; i < 50; ++i) count++;
  CHECK(count == 50, "huge chunk: %d iterations", count);
  count = 0;
#pragma omp parallel for num_threads(threads) schedule(guided, huge) reduction(+ : count)
  for (unsigned long long i = ULLONG_MAX - 50; i < ULLONG_MAX; ++i) count++;
  CHECK(count == 50, "huge guided chunk: %d iterations", count);
}

static void empty_loops(long n) {
  int count = 0;
#pragma omp parallel num_threads(threads) reduction(+ : count)
  {
#pragma omp for schedule(dynamic)
    for (long i = n; i < n; ++i) count++;
#pragma omp for schedule(guided) nowait
    for (long i = n; i < 0; ++i) count++;
#pragma omp for schedule(runtime)
    for (long i = 0; i > n; --i) count++;
#pragma omp for schedule(dynamic, 7) nowait
    for (unsigned long long i = ULLONG_MAX - (unsigned long long)n; i < (unsigned long long)n; ++i)
      count++;
#pragma omp for schedule(static)
    for (int i = 5; i < 5; ++i) count++;
#pragma omp for schedule(dynamic) collapse(2)
    for (int i = 0; i < 10; ++i)
      for (int k = 0; k < n - n; ++k) count++;
  }
  CHECK(count == 0, "empty loops ran %d iterations", count);
}

static void collapsed(void) {
#pragma omp parallel num_threads(threads)
  {
#pragma omp for collapse(3) schedule(dynamic, 5)
    for (int i = 0; i < 7; ++i)
      for (long k = 10; k > 0; k -= 2)
        for (unsigned m = 3; m < 9; ++m) hit((i * 5 + (10 - k) / 2) * 6 + (m - 3));
  }
  once(7 * 5 * 6, "collapse(3)");
#pragma omp parallel for num_threads(threads) collapse(2) schedule(guided)
  for (unsigned long long i = 0; i < 11; ++i)
    for (int k = -6; k < 7; ++k) hit((long)i * 13 + k + 6);
  once(11 * 13, "collapse(2) ull");
  // A triangular nest: the inner bound depends on the outer variable.
#pragma omp parallel for num_threads(threads) collapse(2)
  for (int i = 0; i < 40; ++i)
    for (int k = 0; k < i; ++k) hit(i * (i - 1) / 2 + k);
  once(40 * 39 / 2, "collapse(2) triangle");
}

static void last_values(void) {
  for (int round = 0; round < 10; ++round) {
    int last = -1;
    double inner = -1;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 3) lastprivate(last, inner)
      for (int i = 0; i < 500; ++i) {
        last = i;
        inner = i * 0.5;
      }
      CHECK(last == 499 && inner == 249.5, "lastprivate: %d and %g", last, inner);
#pragma omp barrier
#pragma omp for schedule(static) lastprivate(conditional : last)
      for (int i = 0; i < 500; ++i)
        if (i % 100 == 42) last = i;
      CHECK(last == 442, "lastprivate(conditional): %d", last);
    }
  }
}

int main(void) {
  omp_set_dynamic(0);
  static const int team_sizes[] = {0, 2, 3, 8};
  for (int t = 0; t < 4; ++t) {
    threads = team_sizes[t] ? team_sizes[t] : omp_get_max_threads();
    static const long counts[] = {1, 2, 7, 64, 1000};
    for (int c = 0; c < 5; ++c) {
      all_schedules(counts[c], 1);
      all_schedules(counts[c], 6);
      if (counts[c] <= 64) all_schedules(counts[c], INT_MAX);
    }
    runtime_schedules(1);
    runtime_schedules(100);
    for (int round = 0; round < 5; ++round) {
      monotonic_order();
      chunk_shape();
      whole_range();
      empty_loops(5);
      collapsed();
    }
    last_values();
  }
  return passed();
}
