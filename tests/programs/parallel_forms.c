// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// parallel in all its forms: team sizes, if, data sharing, proc_bind, and the combined constructs.
#include "check.h"

#include <omp.h>

enum { kMax = 256 };

static int ran[kMax];

static void clear(void) { memset(ran, 0, sizeof ran); }

static void each_once(int threads, const char* what) {
  for (int i = 0; i < kMax; ++i)
    CHECK(ran[i] == (i < threads), "%s of %d: member %d ran %d times", what, threads, i, ran[i]);
}

static void sizes(void) {
  static const int wanted[] = {1, 2, 3, 4, 7, 8, 16, 2, 31, 64, 2, 1, 128, 2};
  for (int repeat = 0; repeat < 5; ++repeat)
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
      int threads = wanted[i];
      clear();
#pragma omp parallel num_threads(threads)
      {
        CHECK(omp_get_num_threads() == threads, "team of %d, wanted %d", omp_get_num_threads(),
              threads);
        ran[omp_get_thread_num()]++;
      }
      each_once(threads, "parallel");
      CHECK(omp_get_num_threads() == 1 && omp_get_thread_num() == 0, "not alone outside a region");
    }
}

static void default_size(void) {
  int expected = omp_get_max_threads();
  clear();
#pragma omp parallel
  {
    CHECK(omp_get_num_threads() == expected, "team of %d, nthreads-var %d", omp_get_num_threads(),
          expected);
    ran[omp_get_thread_num()]++;
  }
  each_once(expected, "parallel without num_threads");
}

static void conditions(int yes, int no) {
  clear();
#pragma omp parallel num_threads(4) if (no)
  {
    CHECK(omp_get_num_threads() == 1 && !omp_in_parallel(), "if(0): team of %d",
          omp_get_num_threads());
    CHECK(omp_get_level() == 1 && omp_get_active_level() == 0, "if(0): level %d, active %d",
          omp_get_level(), omp_get_active_level());
    ran[omp_get_thread_num()]++;
  }
  each_once(1, "parallel if(0)");
  clear();
#pragma omp parallel num_threads(4) if (parallel : yes)
  {
    CHECK(omp_in_parallel(), "omp_in_parallel is false in a team of 4");
    ran[omp_get_thread_num()]++;
  }
  each_once(4, "parallel if(1)");
}

static void data_sharing(void) {
  int first = 5, shared_value = 0, private_value = 77;
  double array[3] = {1, 2, 3};
#pragma omp parallel num_threads(8) default(none) firstprivate(first, array) \
    shared(shared_value) private(private_value)
  {
    private_value = omp_get_thread_num();
    first += private_value;
    array[private_value % 3] += private_value;
#pragma omp barrier
    int me = omp_get_thread_num();
    if (first != 5 + me || private_value != me || array[me % 3] != me % 3 + 1 + me) {
#pragma omp atomic
      shared_value += 1000;
    }
#pragma omp atomic
    shared_value++;
  }
  CHECK(shared_value == 8, "%d: data of members got mixed up", shared_value);
  CHECK(first == 5 && private_value == 77 && array[0] == 1 && array[1] == 2 && array[2] == 3,
        "the originals of private variables changed");
}

static void large_data(void) {
  struct {
    long item[2000];
  } block;
  for (int i = 0; i < 2000; ++i) block.item[i] = i;
  long sum = 0;
#pragma omp parallel num_threads(6) firstprivate(block) reduction(+ : sum)
  {
    for (int i = 0; i < 2000; ++i) block.item[i] *= omp_get_thread_num() + 1;
#pragma omp barrier
    for (int i = 0; i < 2000; ++i) sum += block.item[i];
  }
  CHECK(sum == 1999L * 1000 * 21, "sum %ld", sum);
}

static void binding_clauses(void) {
#pragma omp parallel num_threads(4) proc_bind(close)
  CHECK(omp_get_num_threads() == 4, "proc_bind(close): team of %d", omp_get_num_threads());
#pragma omp parallel num_threads(4) proc_bind(spread)
  CHECK(omp_get_num_threads() == 4, "proc_bind(spread): team of %d", omp_get_num_threads());
#pragma omp parallel num_threads(4) proc_bind(master)
  CHECK(omp_get_num_threads() == 4, "proc_bind(master): team of %d", omp_get_num_threads());
}

static int hits[1000];

static void iterations(const char* what) {
  for (int i = 0; i < 1000; ++i) {
    CHECK(hits[i] == 1, "%s: iteration %d ran %d times", what, i, hits[i]);
    hits[i] = 0;
  }
}

/// Constant bounds and run-time bounds take different entry points of the runtime.
static void combined_loops(int n) {
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for");
#pragma omp parallel for num_threads(8) schedule(static, 7)
  for (int i = 0; i < n; ++i) hits[i]++;
  iterations("parallel for static,7");
#pragma omp parallel for num_threads(8) schedule(dynamic, 7)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for dynamic,7");
#pragma omp parallel for num_threads(8) schedule(dynamic)
  for (int i = n - 1; i >= 0; --i) hits[i]++;
  iterations("parallel for dynamic, downwards");
#pragma omp parallel for num_threads(8) schedule(monotonic : dynamic, 3)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for monotonic:dynamic");
#pragma omp parallel for num_threads(8) schedule(guided)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for guided");
#pragma omp parallel for num_threads(8) schedule(monotonic : guided, 4)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for monotonic:guided");
#pragma omp parallel for num_threads(8) schedule(runtime)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for runtime");
#pragma omp parallel for num_threads(8) schedule(nonmonotonic : runtime)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for nonmonotonic:runtime");
#pragma omp parallel for num_threads(8) schedule(monotonic : runtime)
  for (int i = 0; i < 1000; ++i) hits[i]++;
  iterations("parallel for monotonic:runtime");
#pragma omp parallel for num_threads(8) schedule(auto)
  for (int i = 0; i < n; ++i) hits[i]++;
  iterations("parallel for auto");
#pragma omp parallel for simd num_threads(4) schedule(simd : static, 5)
  for (int i = 0; i < n; ++i) hits[i]++;
  iterations("parallel for simd");
#pragma omp parallel num_threads(4)
#pragma omp loop bind(parallel)
  for (int i = 0; i < n; ++i) hits[i]++;
  iterations("loop");
#pragma omp parallel loop num_threads(4)
  for (int i = 0; i < n; ++i) hits[i]++;
  iterations("parallel loop");
  int last = -1, first = 3;
#pragma omp parallel for num_threads(4) lastprivate(last) firstprivate(first) schedule(dynamic, 3)
  for (int i = 0; i < n; ++i) last = i + first;
  CHECK(last == n + 2, "lastprivate: %d", last);
}

static void combined_sections(void) {
  for (int threads = 1; threads <= 9; threads += 2) {
    int done[5] = {0};
#pragma omp parallel sections num_threads(threads) shared(done)
    {
#pragma omp section
      done[0]++;
#pragma omp section
      done[1]++;
#pragma omp section
      done[2]++;
#pragma omp section
      done[3]++;
#pragma omp section
      done[4]++;
    }
    for (int i = 0; i < 5; ++i)
      CHECK(done[i] == 1, "parallel sections: section %d ran %d times", i, done[i]);
  }
}

static void masters(void) {
  int count = 0, tasks = 0;
#pragma omp parallel master num_threads(4)
  {
    CHECK(omp_get_thread_num() == 0, "master is thread %d", omp_get_thread_num());
    count++;
  }
#pragma omp parallel masked filter(2) num_threads(4)
  {
    CHECK(omp_get_thread_num() == 2, "masked is thread %d", omp_get_thread_num());
    count++;
  }
#pragma omp parallel master taskloop num_threads(4) shared(tasks)
  for (int i = 0; i < 100; ++i) {
#pragma omp atomic
    tasks++;
  }
#pragma omp parallel masked taskloop num_threads(4) shared(tasks) grainsize(3)
  for (int i = 0; i < 100; ++i) {
#pragma omp atomic
    tasks++;
  }
  CHECK(count == 2 && tasks == 200, "%d masters, %d iterations", count, tasks);
}

int main(void) {
  omp_set_dynamic(0);
  default_size();
  sizes();
  for (int round = 0; round < 20; ++round) {
    conditions(1, 0);
    data_sharing();
    large_data();
    binding_clauses();
    combined_loops(1000);
    combined_sections();
    masters();
  }
  return passed();
}
