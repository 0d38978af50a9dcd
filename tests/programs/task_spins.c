// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A task that spins on a flag which another task sets. With as many threads as spinning tasks and one
// more, progress of the team's threads is enough. (With fewer it hangs, as on any runtime whose tasks are
// tied: a busy thread may not begin another.)
#include "check.h"

#include <omp.h>

static int flags[64];

static void wait_for(int index) {
  while (!__atomic_load_n(&flags[index], __ATOMIC_ACQUIRE)) {
  }
}

static void raise_flag(int index) { __atomic_store_n(&flags[index], 1, __ATOMIC_RELEASE); }

/// `later`: the spinner is created before the task that sets the flag; else after it.
static void pair(int threads, int later) {
  int done = 0;
  memset(flags, 0, sizeof flags);
#pragma omp parallel num_threads(threads) shared(done)
#pragma omp single
  {
    for (int step = 0; step < 2; ++step) {
      if ((step == 0) == later) {
#pragma omp task shared(done)
        {
          wait_for(0);
#pragma omp atomic
          done++;
        }
      } else {
#pragma omp task shared(done)
        {
          raise_flag(0);
#pragma omp atomic
          done++;
        }
      }
    }
  }
  CHECK(done == 2, "%d of 2 tasks ran", done);
}

/// A chain: each task spins on the one created after it (or before it); `spinners` < threads.
static void chain(int threads, int spinners, int later) {
  int done = 0;
  memset(flags, 0, sizeof flags);
#pragma omp parallel num_threads(threads) shared(done)
#pragma omp single
  {
    for (int i = 0; i <= spinners; ++i) {
#pragma omp task firstprivate(i) shared(done)
      {
        if (later) {
          if (i < spinners) wait_for(i + 1);
        } else {
          if (i > 0) wait_for(i - 1);
        }
        raise_flag(i);
#pragma omp atomic
        done++;
      }
    }
  }
  CHECK(done == spinners + 1, "%d of %d tasks ran", done, spinners + 1);
}

/// The task spins on what its creator does after making it, and the other way round.
static void with_creator(int threads) {
  memset(flags, 0, sizeof flags);
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
#pragma omp task
    {
      raise_flag(0);
      wait_for(1);
      raise_flag(2);
    }
    wait_for(0);
    raise_flag(1);
#pragma omp taskwait
    CHECK(flags[2], "taskwait returned before its task ended");
  }
}

int main(int argc, char** argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  omp_set_dynamic(0);
  for (int round = 0; round < 30; ++round) {
    pair(threads, 0);
    pair(threads, 1);
    if (threads > 1) with_creator(threads);
  }
  int spinners = threads > 1 ? threads - 1 : 3;
  for (int round = 0; round < 10; ++round) {
    chain(threads, spinners, 0);
    chain(threads, spinners, 1);
  }
  return passed();
}
