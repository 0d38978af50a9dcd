// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cost of explicit tasks, dependences, taskloop and dynamic loops. Every case checks its result.
#include <omp.h>

#include "bench.h"

static int threads;

enum { kFibTasks = 242784 };  // fib(25): two for every call that is not a leaf

static long fib(int n) {
  if (n < 2) return n;
  long a, b;
#pragma omp task shared(a) firstprivate(n)
  a = fib(n - 1);
#pragma omp task shared(b) firstprivate(n)
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

static double fib_run(void* unused, long count) {
  (void)unused;
  long result = 0;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    result = fib(25);
    if (result != 75025) bench_fail("fib: wrong result");
  }
  return now_ns() - start;
}

enum { kQueens = 9, kQueensSolutions = 352 };

static int queen_fits(const signed char* rows, int column, int row) {
  for (int c = 0; c < column; c++) {
    const int distance = rows[c] - row;
    if (distance == 0 || distance == column - c || distance == c - column) return 0;
  }
  return 1;
}

static long queens_tasks;  // counted by the sequential run

static long queens_plain(signed char* rows, int column) {
  if (column == kQueens) return 1;
  long found = 0;
  for (int row = 0; row < kQueens; row++) {
    if (!queen_fits(rows, column, row)) continue;
    queens_tasks++;
    rows[column] = (signed char)row;
    found += queens_plain(rows, column + 1);
  }
  return found;
}

static long queens(const signed char* rows, int column) {
  if (column == kQueens) return 1;
  long found[kQueens] = {0};
  for (int row = 0; row < kQueens; row++) {
    if (!queen_fits(rows, column, row)) continue;
#pragma omp task shared(found) firstprivate(row, column, rows)
    {
      signed char mine[kQueens];
      memcpy(mine, rows, (size_t)column);
      mine[column] = (signed char)row;
      found[row] = queens(mine, column + 1);
    }
  }
#pragma omp taskwait
  long sum = 0;
  for (int row = 0; row < kQueens; row++) sum += found[row];
  return sum;
}

static double queens_run(void* unused, long count) {
  (void)unused;
  const signed char rows[kQueens] = {0};
  long result = 0;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    result = queens(rows, 0);
    if (result != kQueensSolutions) bench_fail("queens: wrong result");
  }
  return now_ns() - start;
}

/// A task for every placement, also for those that turn out to be threatened: some 75,000.
static long placements(const signed char* rows, int column) {
  if (column == kQueens) return 1;
  long found[kQueens] = {0};
  for (int row = 0; row < kQueens; row++) {
#pragma omp task shared(found) firstprivate(row, column, rows)
    {
      signed char mine[kQueens];
      memcpy(mine, rows, (size_t)column);
      mine[column] = (signed char)row;
      if (queen_fits(mine, column, row)) found[row] = placements(mine, column + 1);
    }
  }
#pragma omp taskwait
  long sum = 0;
  for (int row = 0; row < kQueens; row++) sum += found[row];
  return sum;
}

static double placements_run(void* unused, long count) {
  (void)unused;
  const signed char rows[kQueens] = {0};
  long result = 0;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    result = placements(rows, 0);
    if (result != kQueensSolutions) bench_fail("placements: wrong result");
  }
  return now_ns() - start;
}

enum { kFlat = 200000 };

static double flat_run(void* unused, long count) {
  (void)unused;
  static unsigned char done[kFlat];
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    for (int t = 0; t < kFlat; t++) {
#pragma omp task firstprivate(t)
      done[t]++;
    }
  }
  const double took = now_ns() - start;
  for (int t = 0; t < kFlat; t++)
    if (done[t] != (unsigned char)count) bench_fail("flat: a task was lost or run twice");
  memset(done, 0, sizeof done);
  return took;
}

enum { kChain = 100000 };

static double chain_run(void* unused, long count) {
  (void)unused;
  long link = 0;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    for (int t = 0; t < kChain; t++) {
#pragma omp task depend(inout : link) shared(link)
      link = link + 1;
    }
  }
  if (link != count * kChain) bench_fail("chain: tasks ran out of order");
  return now_ns() - start;
}

enum { kGrid = 200, kGridRow = kGrid + 1 };

static double grid_run(void* unused, long count) {
  (void)unused;
  static int grid[kGridRow * kGridRow];  // row 0 and column 0 are the border
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    for (int y = 1; y <= kGrid; y++)
      for (int x = 1; x <= kGrid; x++) {
        int* here = &grid[y * kGridRow + x];
#pragma omp task firstprivate(here) depend(in : here[-1], here[-kGridRow]) depend(out : here[0])
        here[0] = 1 + (here[-1] > here[-kGridRow] ? here[-1] : here[-kGridRow]);
      }
    if (grid[kGridRow * kGridRow - 1] != 2 * kGrid - 1) bench_fail("grid: wrong order");
  }
  return now_ns() - start;
}

enum { kIterations = 100000 };

static unsigned char visited[kIterations];

static void check_visited(long count) {
  for (int t = 0; t < kIterations; t++)
    if (visited[t] != (unsigned char)count) bench_fail("loop: an iteration was lost or run twice");
  memset(visited, 0, sizeof visited);
}

static double taskloop_run(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
#pragma omp single
#pragma omp taskloop grainsize(1)
    for (int t = 0; t < kIterations; t++) visited[t]++;
  }
  const double took = now_ns() - start;
  check_visited(count);
  return took;
}

static double dynamic_run(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int t = 0; t < kIterations; t++) visited[t]++;
  }
  const double took = now_ns() - start;
  check_visited(count);
  return took;
}

static double guided_run(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
#pragma omp parallel for num_threads(threads) schedule(guided)
    for (int t = 0; t < kIterations; t++) visited[t]++;
  }
  const double took = now_ns() - start;
  check_visited(count);
  return took;
}

enum { kShort = 128 };

/// One loop of 128 iterations after the other, with its barrier, inside one region.
#define SHORT_LOOPS(name, clause)                                                      \
  static double name(void* unused, long count) {                                       \
    (void)unused;                                                                      \
    double start = 0, end = 0;                                                         \
    long ran = 0;                                                                      \
    _Pragma("omp parallel num_threads(threads) reduction(+ : ran)") {                  \
      _Pragma("omp barrier");                                                          \
      if (omp_get_thread_num() == 0) start = now_ns();                                 \
      for (long i = 0; i < count; i++) {                                               \
        _Pragma(clause) for (int t = 0; t < kShort; t++) {                             \
          BENCH_KEEP();                                                                \
          ran++;                                                                       \
        }                                                                              \
      }                                                                                \
      if (omp_get_thread_num() == 0) end = now_ns();                                   \
    }                                                                                  \
    if (ran != count * kShort) bench_fail("loop: an iteration was lost or run twice"); \
    return end - start;                                                                \
  }

SHORT_LOOPS(short_dynamic, "omp for schedule(dynamic, 1)")
SHORT_LOOPS(short_guided, "omp for schedule(guided)")

int main(int argc, char** argv) {
  signed char rows[kQueens] = {0};
  if (queens_plain(rows, 0) != kQueensSolutions) bench_fail("queens: wrong sequential result");
  const struct {
    const char* name;
    BenchRun run;
    long units;  // tasks or iterations in one run
    const char* unit;
  } cases[] = {{"fib", fib_run, kFibTasks, "ns"},
               {"queens", queens_run, queens_tasks, "ns"},
               {"placements", placements_run, 1000000, "ms"},
               {"flat", flat_run, kFlat, "ns"},
               {"chain", chain_run, kChain, "ns"},
               {"grid", grid_run, (long)kGrid * kGrid, "ns"},
               {"taskloop", taskloop_run, kIterations, "ns"},
               {"loop-dynamic", dynamic_run, kIterations, "ns"},
               {"loop-guided", guided_run, kIterations, "ns"},
               {"short-dynamic", short_dynamic, 1, "ns"},
               {"short-guided", short_guided, 1, "ns"}};
  if (argc < 3) bench_fail("usage: tasks CASE THREADS");
  threads = bench_int(argc, argv, 2);
  omp_set_dynamic(0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    bench_print(argv[1], bench_measure(cases[i].run, NULL) / (double)cases[i].units, cases[i].unit);
    return 0;
  }
  bench_fail("tasks: unknown case");
}
