// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tasks that are created where a region ends: compilers leave out the barrier there, so the other
// members have ended when the tasks come. One task sleeps in the kernel until another has run, and the
// member that created both runs only one of them at a time.
#define _GNU_SOURCE
#include <errno.h>
#include <omp.h>
#include <semaphore.h>
#include <stdlib.h>

#include "check.h"

static void wait_for(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) CHECK(errno == EINTR, "sem_wait: errno %d", errno);
}

// A chain: task i goes on when task i + 1 has run, so the creator's first task needs all others.
static void chain(int size, int tasks, int level) {
  sem_t* done = malloc(sizeof(sem_t) * (size_t)(tasks + 1));
  int* number = malloc(sizeof(int) * (size_t)tasks);
  CHECK(done && number, "no memory");
  for (int i = 0; i <= tasks; ++i) CHECK(sem_init(&done[i], 0, 0) == 0, "sem_init");
  sem_post(&done[tasks]);
#pragma omp parallel num_threads(size)
#pragma omp single
  {
    for (int i = 0; i < tasks; ++i) {
#pragma omp task firstprivate(i)
      {
        wait_for(&done[i + 1]);
        number[i] = omp_get_thread_num();
        CHECK(omp_get_num_threads() == size, "task %d: a team of %d", i, omp_get_num_threads());
        CHECK(omp_get_level() == level, "task %d: level %d", i, omp_get_level());
        sem_post(&done[i]);
      }
    }
  }
  for (int i = 0; i < tasks; ++i)
    CHECK(number[i] >= 0 && number[i] < size, "task %d ran as member %d of %d", i, number[i], size);
  for (int i = 0; i <= tasks; ++i) sem_destroy(&done[i]);
  free(done);
  free(number);
}

// Tasks that create tasks, again and again, in teams whose objects are used again.
static long sum(int depth) {
  if (depth == 0) return 1;
  long left = 0;
  long right = 0;
#pragma omp task shared(left)
  left = sum(depth - 1);
#pragma omp task shared(right)
  right = sum(depth - 1);
#pragma omp taskwait
  return left + right;
}

static void sums(int size, int rounds, int depth) {
  for (int round = 0; round < rounds; ++round) {
    long total = 0;
#pragma omp parallel num_threads(size)
#pragma omp single nowait
#pragma omp task shared(total)
    total = sum(depth);
    CHECK(total == 1L << depth, "round %d: %ld", round, total);
    int plain = 0;
#pragma omp parallel num_threads(size) reduction(+ : plain)
    plain += 1;
    CHECK(plain == size, "round %d: %d members", round, plain);
  }
}

int main(int argc, char** argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  omp_set_max_active_levels(8);
  chain(threads, threads, 1);
  sums(threads, 200, 6);
#pragma omp parallel num_threads(2)
  {
    chain(threads, threads, 2);
    sums(threads, 50, 4);
  }
  return passed();
}
