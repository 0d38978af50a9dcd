// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where strangers want the CPUs the runtime moves its kernel threads about by their affinity masks, and no member ever finds another mask
// than the process has: not at its begin, not after a while, not behind a barrier, and no thread that it makes inherits one. Nor do calls
// that block end early. The strangers are threads of this process, one a CPU, like those of a BLAS that poll.
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { kMostStrangers = 64 };

static cpu_set_t all;
static atomic_int stop;

static void compute(double us) {
  for (double end = omp_get_wtime() + 1e-6 * us; omp_get_wtime() < end;) {
  }
}

static void check_mask(const char* when) {
  cpu_set_t now;
  CHECK(sched_getaffinity(0, sizeof now, &now) == 0, "sched_getaffinity: %s", strerror(errno));
  CHECK(CPU_EQUAL(&now, &all), "%s: an affinity mask of %d CPUs, the process's has %d", when,
        CPU_COUNT(&now), CPU_COUNT(&all));
}

static void* stranger(void* argument) {
  while (!atomic_load(&stop)) {
  }
  return argument;
}

static void* born(void* argument) {
  check_mask("in a thread that a member made");
  return argument;
}

static void region(int members, double us) {
#pragma omp parallel num_threads(members)
  {
    check_mask("at the begin");
    compute(us);
    check_mask("after a while");
#pragma omp barrier
    check_mask("behind a barrier");
    compute(us / 4);
    check_mask("at the end");
  }
}

static void make_threads(int members) {
#pragma omp parallel num_threads(members)
  {
    pthread_t thread;
    compute(30);
    CHECK(pthread_create(&thread, NULL, born, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
  }
}

static void sleep_in_one(int members) {
#pragma omp parallel num_threads(members)
  if (omp_get_thread_num() == 1) {
    const struct timespec wanted = {0, 5000000};
    const double begin = omp_get_wtime();
    CHECK(nanosleep(&wanted, NULL) == 0, "nanosleep: %s", strerror(errno));
    CHECK(omp_get_wtime() - begin >= 5e-3, "slept %.6f s", omp_get_wtime() - begin);
    check_mask("after a sleep");
  }
}

int main(void) {
  CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity: %s", strerror(errno));
  const int cpus = omp_get_num_procs();
  const int count = cpus < kMostStrangers ? cpus : kMostStrangers;
  pthread_t strangers[kMostStrangers];
  for (int i = 0; i < count; ++i)
    CHECK(pthread_create(&strangers[i], NULL, stranger, NULL) == 0, "pthread_create");
  const double end = omp_get_wtime() + 2;
  for (int i = 0; omp_get_wtime() < end; ++i) {
    for (int members = 2; members <= 8; members *= 2) {
      region(members, (double[]){2, 20, 200, 2000}[i % 4]);
      if (i % 8 == 0) make_threads(members);
      if (i % 8 == 4) sleep_in_one(members);
    }
    check_mask("outside");
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < count; ++i) pthread_join(strangers[i], NULL);
  return 0;
}
