// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// pthreads whose first use of OpenMP is a lock that others hold: each opens a region afterwards like any other thread.
#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { kPthreads = 6, kTimes = 5000 };

static omp_lock_t lock;
static long counted, members;

static void* works(void* argument) {
  (void)argument;
  for (int i = 0; i < kTimes; i++) {
    omp_set_lock(&lock);
    counted++;
    if (i % 64 == 0) sched_yield();  // so that others come and find it held
    omp_unset_lock(&lock);
  }
  long mine = 0;
#pragma omp parallel num_threads(3) reduction(+ : mine)
  mine++;
  __atomic_add_fetch(&members, mine, __ATOMIC_RELAXED);
  return NULL;
}

int main(void) {
  omp_init_lock(&lock);
  pthread_t threads[kPthreads];
  for (int i = 0; i < kPthreads; i++)
    CHECK(pthread_create(&threads[i], NULL, works, NULL) == 0, "pthread_create failed");
  for (int i = 0; i < kPthreads; i++) pthread_join(threads[i], NULL);
  CHECK(counted == (long)kPthreads * kTimes, "%ld counted", counted);
  CHECK(members == 3 * kPthreads, "%ld members", members);
  return passed();
}
