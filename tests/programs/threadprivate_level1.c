// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// threadprivate of level-1 members: it persists from region to region, whatever the number of cores.
#include "check.h"

#include <omp.h>

enum { kMaxThreads = 64 };

static int counter = 100;
static double table[32];
static struct {
  char name[24];
  int* self;
} record;
#pragma omp threadprivate(counter, table, record)

static int* address[kMaxThreads];

static void fill(int me, int value) {
  counter = value + me;
  for (int i = 0; i < 32; ++i) table[i] = value + me * 100.0 + i;
  snprintf(record.name, sizeof record.name, "thread %d/%d", me, value);
  record.self = &counter;
}

static void verify(int me, int value, const char* where) {
  char name[24];
  snprintf(name, sizeof name, "thread %d/%d", me, value);
  CHECK(counter == value + me, "%s: thread %d reads counter %d, expected %d", where, me, counter,
        value + me);
  for (int i = 0; i < 32; ++i)
    CHECK(table[i] == value + me * 100.0 + i, "%s: thread %d reads table[%d] = %g", where, me, i,
          table[i]);
  CHECK(!strcmp(record.name, name), "%s: thread %d reads '%s'", where, me, record.name);
  CHECK(record.self == &counter, "%s: the copy of thread %d moved", where, me);
}

static void persistence(int threads, int rounds) {
#pragma omp parallel num_threads(threads)
  {
    CHECK(omp_get_num_threads() == threads, "team of %d, wanted %d", omp_get_num_threads(),
          threads);
    int me = omp_get_thread_num();
    fill(me, 7);
    address[me] = &counter;
  }
  for (int a = 0; a < threads; ++a)
    for (int b = 0; b < a; ++b)
      CHECK(address[a] != address[b], "threads %d and %d share one copy", a, b);
  CHECK(address[0] == &counter, "thread 0 is not the encountering thread");
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(threads)
    {
      int me = omp_get_thread_num();
      verify(me, 7 + round, "next region");
      CHECK(address[me] == &counter, "the copy of thread %d is another one", me);
#pragma omp barrier
      fill(me, 8 + round);
#pragma omp barrier
      verify(me, 8 + round, "after a barrier");
    }
    // What comes between must not disturb: a serialised region, and work of the initial thread.
#pragma omp parallel if (0)
    verify(0, 8 + round, "serialised region");
  }
}

/// All members keep theirs over regions that hold a barrier, a critical, tasks and a dynamic loop.
static void with_constructs(int threads, int rounds) {
  int total = 0;
#pragma omp parallel num_threads(threads)
  fill(omp_get_thread_num(), 1000);
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(threads) reduction(+ : total)
    {
      int me = omp_get_thread_num();
      verify(me, 1000 + round, "start");
#pragma omp critical
      counter += 1;
#pragma omp for schedule(dynamic, 1)
      for (int i = 0; i < 4 * threads; ++i) total += 1;
#pragma omp single
      for (int i = 0; i < 2 * threads; ++i) {
#pragma omp task
        {
#pragma omp taskyield
        }
      }
      CHECK(counter == 1000 + round + me + 1, "thread %d reads %d after the loop", me, counter);
      fill(me, 1000 + round + 1);
    }
  }
  CHECK(total == rounds * 4 * threads, "%d iterations", total);
}

static void copyin(int threads) {
  for (int round = 0; round < 50; ++round) {
    fill(0, 5000 + round);
    int base = counter;
#pragma omp parallel num_threads(threads) copyin(counter, table, record)
    {
      CHECK(counter == base, "copyin: %d, expected %d", counter, base);
      CHECK(table[31] == 5000 + round + 31, "copyin: table[31] = %g", table[31]);
#pragma omp barrier
      counter += omp_get_thread_num() + 1;
    }
#pragma omp parallel num_threads(threads)
    CHECK(counter == base + omp_get_thread_num() + 1, "after copyin: thread %d reads %d",
          omp_get_thread_num(), counter);
    counter = base;
  }
}

/// Team sizes vary. Threads that every region in between has had must keep their values; one that was
/// left out may have its old value or a fresh one, but never somebody else's.
static void varying(void) {
  static const int sizes[] = {8, 8, 4, 8, 2, 2, 8, 3, 16, 8, 1, 8, 5, 16, 16, 2, 8};
  int regions = (int)(sizeof sizes / sizeof *sizes);
  int kept[kMaxThreads] = {0};
#pragma omp parallel num_threads(16)
  counter = omp_get_thread_num() * 10000 + 1;
  for (int i = 0; i < 16; ++i) kept[i] = 1;
  for (int region = 0; region < regions; ++region) {
    int size = sizes[region];
#pragma omp parallel num_threads(size) shared(kept)
    {
      int me = omp_get_thread_num();
      CHECK(omp_get_num_threads() == size, "team of %d, wanted %d", omp_get_num_threads(), size);
      if (kept[me] || me == 0)
        CHECK(counter / 10000 == me, "region %d: thread %d reads the value %d", region, me,
              counter);
      else
        CHECK(counter / 10000 == me || counter == 100, "region %d: thread %d reads the value %d",
              region, me, counter);
      counter = me * 10000 + region + 2;
    }
    for (int i = 0; i < size; ++i) kept[i] = 1;
    for (int i = size; i < kMaxThreads; ++i) kept[i] = 0;
  }
}

/// Distinct initial values: a member that was never run before starts with the initialiser's value.
static void fresh(void) {
#pragma omp parallel num_threads(4)
  if (omp_get_thread_num() > 0)
    CHECK(counter == 100, "first region: thread %d reads %d, expected the initial 100",
          omp_get_thread_num(), counter);
}

int main(void) {
  omp_set_dynamic(0);
  int threads = omp_get_max_threads();
  if (threads > kMaxThreads) threads = kMaxThreads;
  fresh();
  persistence(threads, 40);
  persistence(8, 100);
  persistence(2, 100);
  with_constructs(threads, 20);
  with_constructs(8, 50);
  copyin(threads);
  copyin(8);
  varying();
  return passed();
}
