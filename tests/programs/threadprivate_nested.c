// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// threadprivate of nested members: each has its own copy until its team ends, and others may read it
// through a pointer, also when its owner has finished its part.
#include "check.h"

#include <omp.h>

enum { kOuter = 8, kInner = 16 };

static long value = -1;
static int marks[16];
#pragma omp threadprivate(value, marks)

/// No barrier: members publish a pointer and leave; the one that arrives last reads all copies. If two
/// members had run one after the other on one copy, it would see the same pointer twice.
static void last_reads_all(int outer, int inner, int rounds) {
#pragma omp parallel num_threads(outer)
  {
    int team = omp_get_thread_num();
    for (int round = 0; round < rounds; ++round) {
      long* copies[64] = {0};
      int arrived = 0, checked = 0;
#pragma omp parallel num_threads(inner) shared(copies, arrived, checked)
      {
        int me = omp_get_thread_num(), n = omp_get_num_threads(), before;
        CHECK(n == inner, "inner team of %d, wanted %d", n, inner);
        value = team * 1000000L + round * 1000L + me;
        __atomic_store_n(&copies[me], &value, __ATOMIC_RELEASE);
        before = __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
        if (before == n - 1) {
          for (int i = 0; i < n; ++i) {
            CHECK(copies[i] != NULL, "member %d left no pointer", i);
            CHECK(*copies[i] == team * 1000000L + round * 1000L + i,
                  "team %d round %d: the copy of member %d holds %ld", team, round, i, *copies[i]);
            for (int k = 0; k < i; ++k)
              CHECK(copies[i] != copies[k], "members %d and %d share one copy", k, i);
          }
          checked = 1;
        }
      }
      CHECK(checked, "nobody was last");
    }
  }
}

/// The same with barriers in between, and reads by everybody.
static void everybody_reads(int outer, int inner, int rounds) {
#pragma omp parallel num_threads(outer)
  {
    int team = omp_get_thread_num();
    long* copies[64];
#pragma omp parallel num_threads(inner) shared(copies)
    {
      int me = omp_get_thread_num();
      copies[me] = &value;
      for (int round = 0; round < rounds; ++round) {
        value = team * 1000 + me + round * 100000L;
        for (int i = 0; i < 16; ++i) marks[i] = me + i + round;
#pragma omp barrier
        for (int i = 0; i < inner; ++i)
          CHECK(*copies[i] == team * 1000 + i + round * 100000L,
                "round %d: member %d of team %d has %ld", round, i, team, *copies[i]);
        for (int i = 0; i < 16; ++i)
          CHECK(marks[i] == me + i + round, "member %d: marks[%d] is %d", me, i, marks[i]);
        CHECK(&value == copies[me], "the copy of member %d moved at a barrier", me);
#pragma omp barrier
      }
    }
  }
}

/// Member 0 of a nested team is the thread that opened it: same copies before, inside and after.
static void master_is_opener(int outer, int inner) {
#pragma omp parallel num_threads(outer)
  {
    int me = omp_get_thread_num();
    value = 70 + me;
    long* mine = &value;
    for (int round = 0; round < 50; ++round) {
#pragma omp parallel num_threads(inner)
      {
        if (omp_get_thread_num() == 0) {
          CHECK(value == 70 + me + round, "opener %d finds %ld in its team", me, value);
          CHECK(&value == mine, "member 0 is not the thread that opened the team");
          value++;
        } else {
          CHECK(&value != mine, "member %d has the copy of its opener", omp_get_thread_num());
          value = -5;
        }
      }
      CHECK(value == 71 + me + round && &value == mine, "opener %d finds %ld after its team", me,
            value);
    }
  }
}

/// Level-1 copies persist although nested teams come and go in between.
static void level1_survives(int outer, int inner) {
#pragma omp parallel num_threads(outer)
  value = 4200 + omp_get_thread_num();
  for (int round = 0; round < 30; ++round) {
#pragma omp parallel num_threads(outer)
    {
      CHECK(value == 4200 + omp_get_thread_num(), "round %d: thread %d reads %ld", round,
            omp_get_thread_num(), value);
#pragma omp parallel num_threads(inner)
      if (omp_get_thread_num() > 0) value = round;
    }
  }
}

static void nested_copyin(int outer, int inner) {
#pragma omp parallel num_threads(outer)
  {
    for (int round = 0; round < 20; ++round) {
      value = omp_get_thread_num() * 50 + round;
      long expected = value;
#pragma omp parallel num_threads(inner) copyin(value)
      {
        CHECK(value == expected, "nested copyin: %ld, expected %ld", value, expected);
#pragma omp barrier
        value += omp_get_thread_num();
#pragma omp barrier
        CHECK(value == expected + omp_get_thread_num(), "member %d reads %ld", omp_get_thread_num(),
              value);
      }
    }
  }
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(4);
  last_reads_all(1, kInner, 100);
  last_reads_all(2, 2, 200);
  last_reads_all(kOuter, 4, 30);
  last_reads_all(2, 64, 20);
  everybody_reads(2, 4, 30);
  everybody_reads(kOuter, kInner, 10);
  master_is_opener(2, 4);
  master_is_opener(8, 3);
  level1_survives(8, 4);
  level1_survives(2, 8);
  nested_copyin(4, 4);
  return passed();
}
