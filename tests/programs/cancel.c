// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cancel and cancellation point of for, sections, parallel and taskgroup. With OMP_CANCELLATION unset or
// false every cancel is without effect.
#include "check.h"

#include <omp.h>

static int active;

static void loops(int threads, int n) {
  int ran = 0, after = 0;
#pragma omp parallel num_threads(threads) shared(ran, after)
  {
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < n; ++i) {
#pragma omp cancellation point for
#pragma omp atomic
      ran++;
      if (i == 3) {
#pragma omp cancel for
      }
    }
#pragma omp atomic
    after++;
#pragma omp barrier
#pragma omp for schedule(static)
    for (int i = 0; i < n; ++i) {
      if (i == n / 2) {
#pragma omp cancel for if (i < 0)
      }
    }
  }
  CHECK(after == threads, "only %d of %d members went on after a cancelled loop", after, threads);
  if (!active) CHECK(ran == n, "cancellation is off, but %d of %d iterations ran", ran, n);
  if (active) CHECK(ran >= 1 && ran <= n, "cancelled loop: %d iterations", ran);
  if (active && threads == 1) CHECK(ran == 4, "cancelled loop of one thread: %d iterations", ran);
}

/// Loops one after the other in a region that itself cannot be cancelled, so that they end with plain
/// barriers: each is cancelled for itself.
static void loops_in_a_row(int threads, int n) {
  int ran[4] = {0, 0, 0, 0}, late = 0;
  const int cut[4] = {1, 0, 1, 0};
#pragma omp parallel num_threads(threads) shared(ran, cut, late)
  for (int round = 0; round < 4; ++round) {
#pragma omp for schedule(static)
    for (int i = 0; i < n; ++i) {
#pragma omp atomic
      ran[round]++;
#pragma omp cancel for if (cut[round])
      if (cut[round] && active) {
#pragma omp atomic
        late++;
      }
    }
#pragma omp for schedule(dynamic, 2)
    for (int i = 0; i < n; ++i) {
#pragma omp cancel for if (i < 0)
#pragma omp atomic
      ran[round]++;
    }
  }
  for (int round = 0; round < 4; ++round) {
    if (!cut[round] || !active)
      CHECK(ran[round] == 2 * n, "round %d: %d of %d iterations", round, ran[round], 2 * n);
    else
      // Each member may begin one iteration before it finds the loop cancelled.
      CHECK(ran[round] >= n + 1 && ran[round] <= n + threads, "round %d, cancelled: %d iterations",
            round, ran[round] - n);
  }
  CHECK(late == 0, "%d iterations went on after they had cancelled their loop", late);
}

static void all_sections(int threads) {
  int ran = 0, after = 0;
#pragma omp parallel num_threads(threads) shared(ran, after)
  {
#pragma omp sections
    {
#pragma omp section
      {
#pragma omp atomic
        ran++;
#pragma omp cancel sections
#pragma omp atomic
        ran += 100;
      }
#pragma omp section
      {
#pragma omp cancellation point sections
#pragma omp atomic
        ran++;
      }
#pragma omp section
      {
#pragma omp atomic
        ran++;
      }
    }
#pragma omp atomic
    after++;
  }
  CHECK(after == threads, "only %d of %d members went on after cancelled sections", after, threads);
  CHECK(active ? ran >= 1 && ran <= 3 : ran == 103, "sections: %d", ran);
}

static void regions(int threads) {
  for (int round = 0; round < 20; ++round) {
    int entered = 0, left = 0;
#pragma omp parallel num_threads(threads) shared(entered, left)
    {
#pragma omp atomic
      entered++;
      if (omp_get_thread_num() == round % threads) {
#pragma omp cancel parallel
      }
      // A cancellable region: its barriers are cancellation points.
#pragma omp barrier
#pragma omp cancellation point parallel
#pragma omp atomic
      left++;
    }
    CHECK(entered == threads, "%d of %d members entered", entered, threads);
    CHECK(left == (active ? 0 : threads), "%d members passed a cancelled region of %d", left,
          threads);
    // The next region is a fresh one.
    int fresh = 0;
#pragma omp parallel num_threads(threads) reduction(+ : fresh)
    {
#pragma omp cancellation point parallel
      fresh++;
    }
    CHECK(fresh == threads, "the region after a cancelled one: %d of %d", fresh, threads);
  }
}

/// Members wait in a barrier or a loop while another cancels the region.
static void waiting_members(int threads) {
  int through = 0;
#pragma omp parallel num_threads(threads) shared(through)
  {
    if (omp_get_thread_num() == threads - 1) {
      volatile int spin = 0;
      for (int i = 0; i < 20000; ++i) spin = spin + i;
#pragma omp cancel parallel if (active)
    }
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 100; ++i) {
      volatile int spin = 0;
      for (int k = 0; k < 100; ++k) spin = spin + k;
    }
#pragma omp barrier
#pragma omp atomic
    through++;
  }
  CHECK(through == (active ? 0 : threads), "%d members of %d went on", through, threads);
}

static void task_groups(int threads) {
  for (int round = 0; round < 10; ++round) {
    int ran = 0, late = 0, outside = 0;
#pragma omp parallel num_threads(threads) shared(ran, late, outside)
#pragma omp single
    {
#pragma omp task shared(outside)
      {
#pragma omp atomic
        outside++;
      }
#pragma omp taskgroup
      {
        for (int i = 0; i < 200; ++i) {
#pragma omp task shared(ran, late) firstprivate(i)
          {
#pragma omp atomic
            ran++;
            if (i == 5) {
#pragma omp cancel taskgroup
            }
            if (i > 5) {
#pragma omp cancellation point taskgroup
#pragma omp atomic
              late++;
            }
          }
        }
      }
      // After the group the task goes on, and new groups work.
      int next = 0;
#pragma omp taskgroup
      for (int i = 0; i < 10; ++i) {
#pragma omp task shared(next)
        {
#pragma omp atomic
          next++;
        }
      }
      CHECK(next == 10, "the taskgroup after a cancelled one ran %d of 10 tasks", next);
    }
    CHECK(outside == 1, "a task outside the cancelled group ran %d times", outside);
    if (!active)
      CHECK(ran == 200 && late == 194, "cancellation is off: %d and %d tasks", ran, late);
    else
      CHECK(ran >= 1 && ran <= 200 && late <= 194, "cancelled taskgroup: %d and %d tasks", ran,
            late);
  }
}

static void nested(int threads) {
  int outer_left = 0;
#pragma omp parallel num_threads(threads) shared(outer_left)
  {
    int inner = 0;
#pragma omp parallel num_threads(3) shared(inner)
    {
#pragma omp cancel parallel
#pragma omp atomic
      inner++;
    }
    CHECK(inner == (active ? 0 : 3), "inner region: %d members went on", inner);
#pragma omp barrier
#pragma omp atomic
    outer_left++;
  }
  CHECK(outer_left == threads, "a cancelled inner region ended the outer one: %d of %d", outer_left,
        threads);
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  active = omp_get_cancellation();
  const char* setting = getenv("OMP_CANCELLATION");
  CHECK(active == (setting && !strcmp(setting, "true")),
        "omp_get_cancellation is %d, OMP_CANCELLATION '%s'", active, setting ? setting : "");
  int sizes[] = {omp_get_max_threads(), 1, 2, 8};
  for (int s = 0; s < 4; ++s)
    for (int round = 0; round < 10; ++round) {
      loops(sizes[s], 1000);
      loops_in_a_row(sizes[s], 200);
      all_sections(sizes[s]);
      regions(sizes[s]);
      waiting_members(sizes[s]);
      task_groups(sizes[s]);
      nested(sizes[s]);
    }
  return passed();
}
