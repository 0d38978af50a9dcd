// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that hand work to each other by flags which they read in a loop, as pipelined solvers do.
//   flags stages | short | across | beside | blocked [TIMES] | phases | behind
#include "hard.h"

#include <stdatomic.h>

enum { kMost = 64 };

/// One slot between a member and the next.
struct Slot {
  _Alignas(64) atomic_int full;
  long value;
};
static struct Slot slots[2][kMost];

static void wait_while(atomic_int* flag, int value) {
  while (atomic_load_explicit(flag, memory_order_acquire) == value) {
  }
}

static long take(struct Slot* slot) {
  wait_while(&slot->full, 0);
  const long value = slot->value;
  atomic_store_explicit(&slot->full, 0, memory_order_release);
  return value;
}
static void put(struct Slot* slot, long value) {
  wait_while(&slot->full, 1);
  slot->value = value;
  atomic_store_explicit(&slot->full, 1, memory_order_release);
}

static int inner_size(void) {
  const int most = omp_get_max_threads();
  return most < 2 ? 2 : most > 8 ? 8 : most;
}

/// A pipeline: each member adds one to what comes from the left and hands it to the right. `before`: the first one waits for
/// what the last one of another pipeline has put there before each plane but the first. `after`: the last one puts something there.
static long pass_planes(struct Slot* line, int size, int planes, double ms, struct Slot* before,
                        struct Slot* after) {
  long sum = 0;
#pragma omp parallel num_threads(size) reduction(+ : sum)
  {
    const int me = omp_get_thread_num(), team = omp_get_num_threads();
    for (int plane = 0; plane < planes; plane++) {
      long value = plane;
      if (me > 0)
        value = take(&line[me - 1]);
      else if (before != NULL && plane > 0)
        take(before);
      if (ms > 0) compute(ms);
      value++;
      if (me < team - 1) {
        put(&line[me], value);
      } else {
        sum += value;
        if (after != NULL) put(after, value);
      }
    }
  }
  return sum;
}

static long planes_sum(int planes, int size) {
  return (long)planes * (planes - 1) / 2 + (long)planes * size;
}

/// Two outer members, each with pipelines of its own, one region after the other.
static void stages(int regions, int planes, double ms) {
  const int size = inner_size();
  long sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  for (int i = 0; i < regions; i++)
    sum += pass_planes(slots[omp_get_thread_num()], size, planes, ms, NULL, NULL);
  CHECK(sum == 2 * regions * planes_sum(planes, size), "%ld", sum);
}

/// The last member of each inner team waits for the first one of the other: no team gets on alone.
static void across(void) {
  const int planes = 12, size = inner_size();
  long sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
    const int me = omp_get_thread_num();
    sum +=
        pass_planes(slots[me], size, planes, .02, &slots[me][kMost - 1], &slots[1 - me][kMost - 1]);
  }
  CHECK(sum == 2 * planes_sum(planes, size), "%ld", sum);
}

/// Beside a team that only computes, and one of which nobody waits.
static void beside(void) {
  const int size = inner_size();
  long sum = 0;
  atomic_int left = 2;
#pragma omp parallel num_threads(3) reduction(+ : sum)
  {
    const int me = omp_get_thread_num();
    if (me < 2) {
      sum += pass_planes(slots[me], size, 16, .05, NULL, NULL);
      left--;
    } else {
#pragma omp parallel num_threads(2)
      while (left > 0) compute(1);
    }
  }
  CHECK(sum == 2 * planes_sum(16, size), "%ld", sum);
}

/// One member of the pipeline waits in the kernel now and then.
static void blocked(void) {
  const int size = inner_size();
  atomic_int turns[2] = {0};
  long done = 0;
#pragma omp parallel num_threads(2) reduction(+ : done)
  {
    atomic_int* mine = &turns[omp_get_thread_num()];
#pragma omp parallel num_threads(size) reduction(+ : done)
    {
      const int me = omp_get_thread_num(), team = omp_get_num_threads();
      for (int lap = 0; lap < 3; lap++) {
        while (atomic_load_explicit(mine, memory_order_acquire) != lap * team + me) {
        }
        const struct timespec pause_of = {0, 2000000};
        if (me == 0) CHECK(nanosleep(&pause_of, NULL) == 0, "a sleep ended early");
        done++;
        atomic_store_explicit(mine, lap * team + me + 1, memory_order_release);
      }
    }
  }
  CHECK(done == 2L * 3 * size, "%ld", done);
}

/// Flags first, then a barrier, then work that waits for nobody, in one region.
static void phases(void) {
  const int size = inner_size();
  long sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
    struct Slot* line = slots[omp_get_thread_num()];
#pragma omp parallel num_threads(size) reduction(+ : sum)
    for (int phase = 0; phase < 3; phase++) {
      const int me = omp_get_thread_num(), team = omp_get_num_threads();
      for (int plane = 0; plane < 6; plane++) {
        if (me > 0) take(&line[me - 1]);
        if (me < team - 1) put(&line[me], plane);
      }
#pragma omp barrier
      compute(.3);
      sum++;
    }
  }
  CHECK(sum == 2L * 3 * size, "%ld", sum);
}

/// A member polls for one of its team that has not begun, where the last one of another team waits for a CPU that could
/// run it: whoever waits at the end of that one can begin nothing for the first.
static void behind(void) {
  atomic_int locked = 0, reaches_barrier = 0, polls = 0;
  int ended = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(2) reduction(+ : ended)
  if (omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(2) reduction(+ : ended)
    {
      if (omp_get_thread_num() == 0) {
        omp_set_lock(&lock);
        atomic_store(&locked, 1);
        wait_while(&reaches_barrier, 0);
        compute(1);  // till it waits there
        omp_unset_lock(&lock);
        wait_while(&polls, 0);
        compute(1);
      } else {
        // Begun, most likely, by the one that waits for the lock.
        atomic_store(&reaches_barrier, 1);
      }
#pragma omp barrier
      ended++;
    }
  } else {
    wait_while(&locked, 0);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    atomic_int has_begun = 0;
#pragma omp parallel num_threads(2) reduction(+ : ended)
    {
      if (omp_get_thread_num() == 0) {
        atomic_store(&polls, 1);
        wait_while(&has_begun, 0);
      } else {
        atomic_store(&has_begun, 1);
      }
      ended++;
    }
  }
  omp_destroy_lock(&lock);
  CHECK(ended == 4, "%d", ended);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (is(mode, "stages"))
    stages(2, 16, .02);
  else if (is(mode, "short"))
    stages(12, 3, 0);
  else if (is(mode, "across"))
    across();
  else if (is(mode, "beside"))
    beside();
  else if (is(mode, "blocked"))
    for (int times = argc > 2 ? atoi(argv[2]) : 1; times > 0; times--) blocked();
  else if (is(mode, "phases"))
    phases();
  else if (is(mode, "behind"))
    for (int i = 0; i < 8; i++) behind();
  else
    no_such_mode();
  return passed();
}
