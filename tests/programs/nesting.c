// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nesting to depth five: sizes, levels, ancestors, serialised levels, and max-active-levels.
#include "check.h"

#include <omp.h>

static int sizes_at[8];
static long leaves;

/// Opens regions down to `depth`; the path holds the thread number at each level.
static void descend(int level, int depth, const int* path) {
  CHECK(omp_get_level() == level, "level %d, expected %d", omp_get_level(), level);
  for (int l = 0; l <= level; ++l) {
    CHECK(omp_get_ancestor_thread_num(l) == path[l], "level %d: ancestor at %d is %d, expected %d",
          level, l, omp_get_ancestor_thread_num(l), path[l]);
    int size = l == 0 ? 1 : sizes_at[l];
    CHECK(omp_get_team_size(l) == size, "level %d: team at %d has %d, expected %d", level, l,
          omp_get_team_size(l), size);
  }
  CHECK(omp_get_ancestor_thread_num(level + 1) == -1 && omp_get_team_size(level + 1) == -1,
        "level %d: an answer for a level that is not there", level);
  CHECK(omp_get_ancestor_thread_num(-1) == -1 && omp_get_team_size(-1) == -1,
        "an answer for level -1");
  int active = 0;
  for (int l = 1; l <= level; ++l) active += sizes_at[l] > 1;
  CHECK(omp_get_active_level() == active, "active level %d, expected %d", omp_get_active_level(),
        active);
  CHECK(omp_in_parallel() == (active > 0), "omp_in_parallel %d at active level %d",
        omp_in_parallel(), active);
  if (level == depth) {
#pragma omp atomic
    leaves++;
    return;
  }
  int before = omp_get_thread_num(), wanted = sizes_at[level + 1];
  int members = 0;
#pragma omp parallel num_threads(wanted) shared(members)
  {
    CHECK(omp_get_num_threads() == wanted, "level %d: team of %d, wanted %d", level + 1,
          omp_get_num_threads(), wanted);
    int longer[8];
    memcpy(longer, path, sizeof(int) * (size_t)(level + 1));
    longer[level + 1] = omp_get_thread_num();
    descend(level + 1, depth, longer);
#pragma omp barrier
    descend(level + 1, level + 1, longer);
#pragma omp atomic
    members++;
  }
  CHECK(members == wanted, "level %d: %d members ran, wanted %d", level + 1, members, wanted);
  CHECK(omp_get_thread_num() == before && omp_get_level() == level,
        "thread %d at level %d after a region", omp_get_thread_num(), omp_get_level());
}

static void tree(int a, int b, int c, int d, int e) {
  int sizes[] = {1, a, b, c, d, e};
  memcpy(sizes_at, sizes, sizeof sizes);
  leaves = 0;
  int path[8] = {0};
  descend(0, 5, path);
  long expected = (long)a * b * c * d * e;                                          // the leaves
  long inner = a + (long)a * b + (long)a * b * c + (long)a * b * c * d + expected;  // second visits
  CHECK(leaves == expected + inner, "%ld visits, expected %ld", leaves, expected + inner);
}

/// Beyond max-active-levels a region has one thread, but still counts as a level.
static void active_levels(void) {
  for (int limit = 0; limit <= 4; ++limit) {
    omp_set_max_active_levels(limit);
    CHECK(omp_get_max_active_levels() == limit, "max-active-levels %d, set to %d",
          omp_get_max_active_levels(), limit);
    int deepest = 0;
#pragma omp parallel num_threads(2) reduction(max : deepest)
    {
      CHECK(omp_get_num_threads() == (limit >= 1 ? 2 : 1), "limit %d, level 1: team of %d", limit,
            omp_get_num_threads());
#pragma omp parallel num_threads(2) reduction(max : deepest)
      {
        CHECK(omp_get_num_threads() == (limit >= 2 ? 2 : 1), "limit %d, level 2: team of %d", limit,
              omp_get_num_threads());
#pragma omp parallel num_threads(2) reduction(max : deepest)
        {
          CHECK(omp_get_num_threads() == (limit >= 3 ? 2 : 1), "limit %d, level 3: team of %d",
                limit, omp_get_num_threads());
          CHECK(omp_get_level() == 3, "level %d", omp_get_level());
          deepest = omp_get_active_level();
        }
      }
    }
    CHECK(deepest == (limit < 3 ? limit : 3), "limit %d: active level %d", limit, deepest);
  }
  omp_set_max_active_levels(-3);  // ignored
  CHECK(omp_get_max_active_levels() == 4, "a negative max-active-levels was taken: %d",
        omp_get_max_active_levels());
  CHECK(omp_get_supported_active_levels() >= 5, "only %d levels supported",
        omp_get_supported_active_levels());
}

/// Inner worksharing, barriers, single, critical and tasks belong to the inner team.
static void constructs_bind_to_inner(int outer, int inner) {
  long total = 0;
#pragma omp parallel num_threads(outer) reduction(+ : total)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < 10; ++round) {
      int hits[37] = {0}, singles = 0, tasks = 0, sum = 0;
#pragma omp parallel num_threads(inner) shared(hits, singles, tasks)
      {
#pragma omp for schedule(dynamic, 2)
        for (int i = 0; i < 37; ++i) hits[i]++;
#pragma omp single
        singles++;
#pragma omp for reduction(+ : sum) schedule(guided)
        for (int i = 0; i < 37; ++i) sum += i * me;
#pragma omp single nowait
        for (int i = 0; i < 5; ++i) {
#pragma omp task
          {
            CHECK(omp_get_num_threads() == inner && omp_get_ancestor_thread_num(1) == me,
                  "a task runs in another team");
#pragma omp atomic
            tasks++;
          }
        }
#pragma omp barrier
        CHECK(tasks == 5, "%d tasks done at the barrier of the inner team", tasks);
      }
      for (int i = 0; i < 37; ++i) CHECK(hits[i] == 1, "iteration %d ran %d times", i, hits[i]);
      CHECK(singles == 1 && sum == 666 * me, "%d singles, sum %d", singles, sum);
      total += sum;
    }
#pragma omp barrier
  }
  CHECK(total == 6660L * outer * (outer - 1) / 2, "total %ld", total);
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(10);
  for (int round = 0; round < 4; ++round) {
    tree(2, 2, 2, 2, 2);
    tree(1, 3, 1, 2, 1);
    tree(4, 2, 1, 3, 2);
    tree(1, 1, 1, 1, 1);
    tree(2, 5, 2, 1, 3);
  }
  constructs_bind_to_inner(2, 2);
  constructs_bind_to_inner(4, 5);
  constructs_bind_to_inner(8, 8);
  active_levels();
  return passed();
}
