// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks and nested locks, across members that block in barriers, in nested teams and in tasks.
#include "check.h"

#include <omp.h>

/// A lock that guards a plain counter.
static void mutual_exclusion(int threads, int rounds) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  long count = 0;
  int inside = 0;
#pragma omp parallel num_threads(threads) shared(lock, count, inside)
  for (int i = 0; i < rounds; ++i) {
    if (i % 3 == 2) {
      while (!omp_test_lock(&lock)) {
      }
    } else {
      omp_set_lock(&lock);
    }
    CHECK(inside == 0, "two members hold one lock");
    inside = 1;
    count++;
    if (i % 16 == 0)
      for (volatile int spin = 0; spin < 2000; spin = spin + 1) {
      }
    inside = 0;
    omp_unset_lock(&lock);
  }
  CHECK(count == (long)threads * rounds, "count %ld, expected %ld", count, (long)threads * rounds);
  omp_destroy_lock(&lock);
}

/// The lock is held across a barrier by one member while others, past the barrier, wait for it.
static void held_across_barriers(int threads, int rounds) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  int order = 0;
#pragma omp parallel num_threads(threads) shared(lock, order)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < rounds; ++round) {
      int holder = round % threads;
      if (me == holder) {
        omp_set_lock(&lock);
        order = 0;
      }
#pragma omp barrier
      if (me == holder) {
        CHECK(order == 0, "round %d: the lock let %d members through", round, order);
        CHECK(!omp_test_lock(&lock), "a held lock was taken again");
        order = 1;
        omp_unset_lock(&lock);
      } else {
        omp_set_lock(&lock);
        CHECK(order >= 1, "round %d: member %d got the lock too early", round, me);
        order++;
        omp_unset_lock(&lock);
      }
#pragma omp barrier
      CHECK(order == threads, "round %d: %d members had the lock", round, order);
#pragma omp barrier
    }
  }
  omp_destroy_lock(&lock);
}

/// Locks taken by one thread may be given back by it in a later region; here the initial thread's.
static void across_regions(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  for (int round = 0; round < 50; ++round) {
    omp_set_lock(&lock);
    int got = 0;
#pragma omp parallel num_threads(4) reduction(+ : got)
    {
      if (omp_get_thread_num() > 0) got += omp_test_lock(&lock) != 0;
    }
    CHECK(got == 0, "a held lock was taken %d times", got);
    omp_unset_lock(&lock);
  }
  omp_destroy_lock(&lock);
}

static void recurse(omp_nest_lock_t* lock, int depth, long* count) {
  omp_set_nest_lock(lock);
  ++*count;
  if (depth > 1) recurse(lock, depth - 1, count);
  omp_unset_nest_lock(lock);
}

static void nested_locks(int threads, int rounds) {
  omp_nest_lock_t lock;
  omp_init_nest_lock(&lock);
  long count = 0;
#pragma omp parallel num_threads(threads) shared(lock, count)
  {
    for (int i = 0; i < rounds; ++i) {
      recurse(&lock, 4, &count);
      int depth = omp_test_nest_lock(&lock);
      if (depth) {
        CHECK(depth == 1, "test_nest_lock of a free lock gave %d", depth);
        depth = omp_test_nest_lock(&lock);
        CHECK(depth == 2, "test_nest_lock of the own lock gave %d", depth);
        count += 2;
        omp_unset_nest_lock(&lock);
        omp_unset_nest_lock(&lock);
      } else {
        omp_set_nest_lock(&lock);
        count += 2;
        omp_unset_nest_lock(&lock);
      }
    }
#pragma omp barrier
    if (omp_get_thread_num() == 0) omp_set_nest_lock(&lock);
#pragma omp barrier
    if (omp_get_thread_num() != 0)
      CHECK(omp_test_nest_lock(&lock) == 0, "a nested lock of another member was taken");
#pragma omp barrier
    if (omp_get_thread_num() == 0) {
      CHECK(omp_test_nest_lock(&lock) == 2,
            "the owner may not take its lock again after a barrier");
      omp_unset_nest_lock(&lock);
      omp_unset_nest_lock(&lock);
    }
  }
  CHECK(count == (long)threads * rounds * 6, "count %ld, expected %ld", count,
        (long)threads * rounds * 6);
  omp_destroy_nest_lock(&lock);
}

/// The owner of a nested lock is the task, not the thread that runs it.
static void owned_by_task(void) {
  omp_nest_lock_t lock;
  omp_init_nest_lock(&lock);
#pragma omp parallel num_threads(2)
#pragma omp single
  {
    omp_set_nest_lock(&lock);
    int got = -1;
#pragma omp task shared(got, lock)
    got = omp_test_nest_lock(&lock);
#pragma omp taskwait
    CHECK(got == 0, "a task took the nested lock of its parent: %d", got);
    CHECK(omp_test_nest_lock(&lock) == 2, "the parent lost its nested lock");
    omp_unset_nest_lock(&lock);
    omp_unset_nest_lock(&lock);
  }
  omp_destroy_nest_lock(&lock);
}

/// Inner teams contend for one lock with the outer ones, and chain many locks hand over hand.
static void nested_teams(int outer, int inner, int rounds) {
  enum { kLocks = 16 };
  omp_lock_t chain[kLocks];
  long passed_by[kLocks] = {0};
  for (int i = 0; i < kLocks; ++i) omp_init_lock(&chain[i]);
#pragma omp parallel num_threads(outer) shared(chain, passed_by)
#pragma omp parallel num_threads(inner) shared(chain, passed_by)
  for (int round = 0; round < rounds; ++round) {
    omp_set_lock(&chain[0]);
    for (int i = 0; i < kLocks; ++i) {
      passed_by[i]++;
      if (i + 1 < kLocks) omp_set_lock(&chain[i + 1]);
      omp_unset_lock(&chain[i]);
    }
  }
  for (int i = 0; i < kLocks; ++i) {
    CHECK(passed_by[i] == (long)outer * inner * rounds, "lock %d was passed %ld times", i,
          passed_by[i]);
    omp_destroy_lock(&chain[i]);
  }
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  int threads = omp_get_max_threads();
  mutual_exclusion(threads, 500);
  mutual_exclusion(8, 500);
  held_across_barriers(threads, 50);
  held_across_barriers(8, 50);
  across_regions();
  nested_locks(threads, 200);
  nested_locks(8, 100);
  owned_by_task();
  nested_teams(2, 4, 50);
  nested_teams(8, 8, 10);
  return passed();
}
