// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Team members that wait for each other by spinning on shared flags, with no library call in the loop.
//
// Legal OpenMP: the members of a team make progress at the same time. A runtime that multiplexes
// members on kernel threads must preempt the spinning ones.
#include "check.h"

#include <omp.h>

enum { kMaxThreads = 64, kLine = 16 };

static int atomic_flags[kMaxThreads * kLine];
static volatile int flushed_flags[kMaxThreads * kLine];
static int token_log[kMaxThreads * 4096];

static int read_flag(int index) {
  int value;
#pragma omp atomic read acquire
  value = atomic_flags[index * kLine];
  return value;
}

static void write_flag(int index, int value) {
  __atomic_store_n(&atomic_flags[index * kLine], value, __ATOMIC_RELEASE);
}

/// Two threads hand a value to and fro.
static void pair(int rounds) {
  int value = 0;
  memset(atomic_flags, 0, sizeof atomic_flags);
#pragma omp parallel num_threads(2) shared(value)
  {
    CHECK(omp_get_num_threads() == 2, "team of %d, wanted 2", omp_get_num_threads());
    int me = omp_get_thread_num();
    for (int round = 0; round < rounds; ++round) {
      int my_turn = 2 * round + me;
      while (read_flag(0) != my_turn) {
      }
      CHECK(value == my_turn, "round %d: value %d, expected %d", round, value, my_turn);
      value++;
      write_flag(0, my_turn + 1);
    }
  }
  CHECK(value == 2 * rounds, "%d hand-overs, expected %d", value, 2 * rounds);
}

/// A ring: each member waits for its predecessor's flag, then raises its own.
static void ring(int threads, int rounds) {
  int position = 0;
  memset(atomic_flags, 0, sizeof atomic_flags);
#pragma omp parallel num_threads(threads) shared(position)
  {
    int n = omp_get_num_threads();
    CHECK(n == threads, "team of %d, wanted %d", n, threads);
    int me = omp_get_thread_num();
    int before = (me + n - 1) % n;
    for (int round = 1; round <= rounds; ++round) {
      int wanted = me == 0 ? round - 1 : round;
      while (read_flag(before) < wanted) {
      }
      token_log[position++] = me;
      write_flag(me, round);
    }
  }
  for (int i = 0; i < threads * rounds; ++i)
    CHECK(token_log[i] == i % threads, "step %d of the ring was made by thread %d", i,
          token_log[i]);
}

/// The old style: volatile flags and `flush`, which compiles to a fence and no call.
static void flushed_ring(int threads, int rounds) {
  int sum = 0;
  for (int i = 0; i < kMaxThreads * kLine; ++i) flushed_flags[i] = 0;
#pragma omp parallel num_threads(threads) shared(sum)
  {
    int n = omp_get_num_threads(), me = omp_get_thread_num(), before = (me + n - 1) % n;
    CHECK(n == threads, "team of %d, wanted %d", n, threads);
    for (int round = 1; round <= rounds; ++round) {
      int wanted = me == 0 ? round - 1 : round;
      for (;;) {
#pragma omp flush
        if (flushed_flags[before * kLine] >= wanted) break;
      }
#pragma omp flush
      sum += me + 1;
#pragma omp flush
      flushed_flags[me * kLine] = round;
#pragma omp flush
    }
  }
  int expected = rounds * threads * (threads + 1) / 2;
  CHECK(sum == expected, "sum %d, expected %d", sum, expected);
}

/// A pipelined solver: each thread owns a block of columns and sweeps the rows; row r of a block needs
/// row r of the block on its left. Compared with the same sweep by one thread.
static void pipeline(int threads, int rows) {
  enum { kWidth = 24 };
  int columns = threads * kWidth;
  double* grid = malloc(sizeof(double) * (size_t)(rows + 1) * (size_t)(columns + 1));
  double* reference = malloc(sizeof(double) * (size_t)(rows + 1) * (size_t)(columns + 1));
  CHECK(grid && reference, "no memory");
#define AT(array, r, c) array[(size_t)(r) * (size_t)(columns + 1) + (size_t)(c)]
  for (int r = 0; r <= rows; ++r)
    for (int c = 0; c <= columns; ++c)
      AT(grid, r, c) = AT(reference, r, c) = (r * 31 + c * 17) % 101 / 101.0;
  for (int r = 1; r <= rows; ++r)
    for (int c = 1; c <= columns; ++c)
      AT(reference, r, c) =
          0.25 * (AT(reference, r - 1, c) + AT(reference, r, c - 1)) + 0.5 * AT(reference, r, c);
  memset(atomic_flags, 0, sizeof atomic_flags);
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num();
    CHECK(omp_get_num_threads() == threads, "team of %d, wanted %d", omp_get_num_threads(),
          threads);
    for (int r = 1; r <= rows; ++r) {
      if (me > 0)
        while (read_flag(me - 1) < r) {
        }
      for (int c = me * kWidth + 1; c <= (me + 1) * kWidth; ++c)
        AT(grid, r, c) = 0.25 * (AT(grid, r - 1, c) + AT(grid, r, c - 1)) + 0.5 * AT(grid, r, c);
      write_flag(me, r);
    }
  }
  for (int r = 0; r <= rows; ++r)
    for (int c = 0; c <= columns; ++c)
      CHECK(AT(grid, r, c) == AT(reference, r, c), "pipeline: row %d column %d is %g, expected %g",
            r, c, AT(grid, r, c), AT(reference, r, c));
#undef AT
  free(grid);
  free(reference);
}

/// Rings inside the members of an outer team: the spinners are nested threads.
static void nested_ring(int outer, int inner, int rounds) {
  memset(atomic_flags, 0, sizeof atomic_flags);
  CHECK(outer * inner <= kMaxThreads, "too many threads asked for");
#pragma omp parallel num_threads(outer)
  {
    int base = omp_get_thread_num() * inner;
    int count = 0;
#pragma omp parallel num_threads(inner) shared(count)
    {
      int n = omp_get_num_threads(), me = omp_get_thread_num(), before = (me + n - 1) % n;
      CHECK(n == inner, "inner team of %d, wanted %d", n, inner);
      for (int round = 1; round <= rounds; ++round) {
        int wanted = me == 0 ? round - 1 : round;
        while (read_flag(base + before) < wanted) {
        }
        count++;
        write_flag(base + me, round);
      }
    }
    CHECK(count == rounds * inner, "ring made %d steps, expected %d", count, rounds * inner);
  }
}

/// One ring through all members of all inner teams: progress is needed across teams too.
static void crossed_ring(int outer, int inner, int rounds) {
  memset(atomic_flags, 0, sizeof atomic_flags);
  int all = outer * inner, count = 0;
  CHECK(all <= kMaxThreads, "too many threads asked for");
#pragma omp parallel num_threads(outer) shared(count)
  {
    int column = omp_get_thread_num();
#pragma omp parallel num_threads(inner) shared(count)
    {
      int me = omp_get_thread_num() * outer + column, before = (me + all - 1) % all;
      for (int round = 1; round <= rounds; ++round) {
        int wanted = me == 0 ? round - 1 : round;
        while (read_flag(before) < wanted) {
        }
        count++;
        write_flag(me, round);
      }
    }
  }
  CHECK(count == rounds * all, "crossed ring made %d steps, expected %d", count, rounds * all);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "all";
  int all = !strcmp(mode, "all");
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (all || !strcmp(mode, "pair"))
    for (int i = 0; i < 10; ++i) pair(20);
  if (all || !strcmp(mode, "ring")) {
    ring(8, 20);
    ring(3, 20);
    ring(2, 50);
  }
  if (all || !strcmp(mode, "flush")) flushed_ring(8, 20);
  if (all || !strcmp(mode, "pipeline")) pipeline(8, 30);
  if (all || !strcmp(mode, "nested")) nested_ring(2, 4, 20);
  if (all || !strcmp(mode, "crossed")) crossed_ring(3, 3, 12);
  return passed();
}
