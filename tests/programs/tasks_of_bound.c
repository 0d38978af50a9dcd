// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks in teams that may be much larger than the machine. Members that wait are woken for tasks, but not all
// of them for each: the tasks run once each, within the time limit, and those that wait for one another
// find members enough to run all of them at a time.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static int* ran;

static void run(int task) {
#pragma omp atomic
  ran[task]++;
}

static void check_runs(const char* what, int tasks) {
  for (int i = 0; i < tasks; ++i) {
    CHECK(ran[i] == 1, "%s: task %d of %d ran %d times", what, i, tasks, ran[i]);
    ran[i] = 0;
  }
}

static void few(int size) {
#pragma omp parallel num_threads(size)
#pragma omp single
  {
    CHECK(omp_get_num_threads() == size, "a team of %d", omp_get_num_threads());
#pragma omp taskloop num_tasks(8)
    for (int i = 0; i < 8; ++i) run(i);
  }
  check_runs("few", 8);
}

static void many(int size) {
#pragma omp parallel num_threads(size)
#pragma omp single nowait
  for (int i = 0; i < 1000; ++i) {
#pragma omp task firstprivate(i)
    run(i);
  }
  check_runs("many", 1000);
}

static void each(int size) {
#pragma omp parallel num_threads(size)
  {
    const int me = omp_get_thread_num();
#pragma omp task firstprivate(me)
    run(me);
  }
  check_runs("each", size);
}

// Tasks of tasks, and waits for them.
static void tree(int first, int count) {
  run(first);
  if (count == 1) return;
  const int half = (count - 1) / 2;
  if (half > 0) {
#pragma omp task
    tree(first + 1, half);
  }
#pragma omp task
  tree(first + 1 + half, count - 1 - half);
#pragma omp taskwait
}

static void trees(int size) {
#pragma omp parallel num_threads(size)
#pragma omp single
  tree(0, 1000);
  check_runs("trees", 1000);
}

static void barriers(int size) {
  int before = 0;
#pragma omp parallel num_threads(size)
  for (int round = 1; round <= 3; ++round) {
#pragma omp atomic
    before++;
#pragma omp barrier
    int seen;
#pragma omp atomic read
    seen = before;
    CHECK(seen == round * size, "%d arrivals in round %d of %d members", seen, round, size);
#pragma omp barrier
  }
}

static void wait_for(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) CHECK(errno == EINTR, "sem_wait: errno %d", errno);
}

// Task i goes on when task i + 1 has begun: all of them run at a time, one on each of the members that
// wait, most of which sleep by then. `pause`: between the tasks, in ns.
static void chain(int size, int tasks, long pause) {
  sem_t* begun = malloc(sizeof(sem_t) * (size_t)(tasks + 1));
  CHECK(begun, "no memory");
  for (int i = 0; i <= tasks; ++i) CHECK(sem_init(&begun[i], 0, 0) == 0, "sem_init");
  sem_post(&begun[tasks]);
#pragma omp parallel num_threads(size)
#pragma omp single
  {
    for (int i = 0; i < tasks; ++i) {
      const struct timespec time = {0, pause};
      if (pause != 0) nanosleep(&time, NULL);
#pragma omp task firstprivate(i)
      {
        sem_post(&begun[i]);
        wait_for(&begun[i + 1]);
        // The next in the chain has it back.
        sem_post(&begun[i + 1]);
        run(i);
      }
    }
  }
  check_runs("chain", tasks);
  for (int i = 0; i <= tasks; ++i) sem_destroy(&begun[i]);
  free(begun);
}

int main(int argc, char** argv) {
  const int size = argc > 1 ? atoi(argv[1]) : 64;
  const int rounds = argc > 2 ? atoi(argv[2]) : 1;
  ran = calloc((size_t)(size > 1000 ? size : 1000), sizeof(int));
  CHECK(ran, "no memory");
  for (int round = 0; round < rounds; ++round) {
    few(size);
    many(size);
    each(size);
    trees(size);
    barriers(size);
    const int most = size < 64 ? size : 64;
    chain(size, most, 0);
    chain(size, most, 200000);
    chain(size, most / 2, 20000);
  }
  free(ran);
  return 0;
}
