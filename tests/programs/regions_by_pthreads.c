// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions opened by several pthreads at once: their teams are separate, have full size, and one with an
// endless member does not hold up the others. Also pthread_exit of a thread that had regions, and many
// short-lived threads.
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>

typedef struct {
  int id, threads, rounds;
  long sum;
} Work;

static void one_region(Work* work, int round, int size) {
  long sum = 0;
  int seen[64] = {0};
#pragma omp parallel num_threads(size) reduction(+ : sum) shared(seen)
  {
    int me = omp_get_thread_num();
    CHECK(omp_get_num_threads() == size, "pthread %d: team of %d, wanted %d", work->id,
          omp_get_num_threads(), size);
    CHECK(omp_get_level() == 1, "pthread %d: level %d in its region", work->id, omp_get_level());
    seen[me]++;
#pragma omp for schedule(dynamic, 3)
    for (int i = 0; i < 200; ++i) sum += i + work->id + round;
#pragma omp barrier
    for (int i = 0; i < size; ++i)
      CHECK(seen[i] == 1, "pthread %d: member %d ran %d times", work->id, i, seen[i]);
#pragma omp single
    for (int i = 0; i < 8; ++i) {
#pragma omp task
      {
#pragma omp atomic
        work->sum += 1;
      }
    }
  }
  CHECK(sum == 19900 + 200L * (work->id + round), "pthread %d: sum %ld", work->id, sum);
}

static void* worker(void* argument) {
  Work* work = argument;
  CHECK(omp_get_level() == 0 && !omp_in_parallel(), "pthread %d starts inside a region", work->id);
  omp_set_max_active_levels(3);  // the ICVs of an initial thread are its own
  for (int round = 0; round < work->rounds; ++round)
    one_region(work, round, round % 3 == 2 ? 2 + work->id % 5 : work->threads);
  CHECK(work->sum == 8L * work->rounds, "pthread %d: %ld tasks", work->id, work->sum);
  // A nested region at the end, and an explicit pthread_exit for every other thread.
  int inner = 0;
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
  {
#pragma omp atomic
    inner++;
  }
  CHECK(inner == 4, "pthread %d: %d nested members", work->id, inner);
  if (work->id % 2) pthread_exit(work);
  return work;
}

static void at_once(int pthreads, int threads, int rounds) {
  pthread_t* handles = calloc((size_t)pthreads, sizeof *handles);
  Work* work = calloc((size_t)pthreads, sizeof *work);
  CHECK(handles && work, "no memory");
  for (int i = 0; i < pthreads; ++i) {
    work[i] = (Work){i, threads, rounds, 0};
    CHECK(pthread_create(&handles[i], NULL, worker, &work[i]) == 0, "pthread_create failed");
  }
  Work own = {100, threads, rounds, 0};
  for (int round = 0; round < rounds; ++round) one_region(&own, round, threads);
  for (int i = 0; i < pthreads; ++i) {
    void* result = NULL;
    CHECK(pthread_join(handles[i], &result) == 0 && result == &work[i], "pthread_join failed");
  }
  free(handles);
  free(work);
}

static int endless_started;
static volatile unsigned long endless_work;

static void* endless_spinner(void* argument) {
  int members = *(int*)argument;
#pragma omp parallel num_threads(members)
  {
    __atomic_add_fetch(&endless_started, 1, __ATOMIC_ACQ_REL);
    if (omp_get_thread_num() > 0 || members == 1)
      for (;;) endless_work++;
    // Thread 0 goes to the barrier at the end and waits there for ever.
  }
  return NULL;
}

static void* endless_sleeper(void* argument) {
  int members = *(int*)argument;
#pragma omp parallel num_threads(members)
  {
    __atomic_add_fetch(&endless_started, 1, __ATOMIC_ACQ_REL);
    for (;;) pause();
  }
  return NULL;
}

static void* endless_nested(void* argument) {
  int members = *(int*)argument;
  omp_set_max_active_levels(3);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(members)
  {
    __atomic_add_fetch(&endless_started, 1, __ATOMIC_ACQ_REL);
    if (omp_get_thread_num() % 2 == 1)
      for (;;) endless_work++;
  }
  return NULL;
}

/// The stranger's region never ends; ours must, again and again. Ends with the process.
static void beside_endless(void* (*stranger)(void*), int members, int expected) {
  pthread_t handle;
  CHECK(pthread_create(&handle, NULL, stranger, &members) == 0, "pthread_create failed");
  while (__atomic_load_n(&endless_started, __ATOMIC_ACQUIRE) < expected) usleep(100);
  Work work = {7, 8, 20, 0};
  for (int round = 0; round < 20; ++round) one_region(&work, round, round % 2 ? 8 : 2);
  at_once(2, 4, 5);
  puts("ok");
  fflush(stdout);
  exit(0);
}

static int count_threads(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[128];
  int threads = -1;
  CHECK(file, "no /proc/self/status");
  while (fgets(line, sizeof line, file)) sscanf(line, "Threads: %d", &threads);
  fclose(file);
  return threads;
}

static long memory_kib(int resident) {
  FILE* file = fopen("/proc/self/statm", "r");
  long pages[2] = {0, 0};
  CHECK(file && fscanf(file, "%ld %ld", &pages[0], &pages[1]) == 2, "no /proc/self/statm");
  fclose(file);
  return pages[resident] * (sysconf(_SC_PAGESIZE) / 1024);
}

/// Waves of short-lived pthreads: neither kernel threads nor memory may pile up.
static void short_lived(int waves, int wave) {
  int threads_early = 0;
  long memory_early = 0;
  for (int i = 0; i < waves; ++i) {
    pthread_t handles[16];
    Work work[16];
    for (int k = 0; k < wave; ++k) {
      work[k] = (Work){k, 4, 2, 0};
      CHECK(pthread_create(&handles[k], NULL, worker, &work[k]) == 0, "wave %d: pthread_create", i);
    }
    for (int k = 0; k < wave; ++k) pthread_join(handles[k], NULL);
    if (i == waves / 4) {
      threads_early = count_threads();
      memory_early = memory_kib(1);
    }
  }
  int threads_late = count_threads();
  long memory_late = memory_kib(1);
  CHECK(threads_late <= threads_early + 64, "kernel threads pile up: %d, then %d", threads_early,
        threads_late);
  CHECK(memory_late <= memory_early + 32 * 1024, "memory piles up: %ld KiB, then %ld KiB",
        memory_early, memory_late);
}

static void* one_pool(void* argument) {
  int size = 2 + (int)((long)argument % 7);
  int members = 0;
#pragma omp parallel num_threads(size)
  {
#pragma omp barrier
#pragma omp atomic
    members++;
  }
  CHECK(members == size, "%d members of %d", members, size);
  return NULL;
}

/// Thousands of pthreads, each with a pool of its own: what one leaves behind must serve the next.
static void many_pools(int pthreads) {
  enum { kAtOnce = 4 };
  int threads_early = 0;
  long resident_early = 0, mapped_early = 0;
  for (int i = 0; i < pthreads; i += kAtOnce) {
    pthread_t handles[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k)
      CHECK(pthread_create(&handles[k], NULL, one_pool, (void*)(long)(i + k)) == 0,
            "pthread %d: pthread_create", i + k);
    for (int k = 0; k < kAtOnce; ++k) pthread_join(handles[k], NULL);
    if (i == pthreads / 5 / kAtOnce * kAtOnce) {
      threads_early = count_threads();
      resident_early = memory_kib(1);
      mapped_early = memory_kib(0);
    }
  }
  int threads_late = count_threads();
  long resident_late = memory_kib(1), mapped_late = memory_kib(0);
  // Stacks and arenas of libc, as many as happened to be in use at once, come and go; a pool is more
  // than 32 KiB.
  CHECK(threads_late <= threads_early + 64, "kernel threads pile up: %d, then %d", threads_early,
        threads_late);
  CHECK(resident_late <= resident_early + 16 * 1024, "memory piles up: %ld KiB, then %ld KiB",
        resident_early, resident_late);
  CHECK(mapped_late <= mapped_early + 1024 * 1024, "mappings pile up: %ld KiB, then %ld KiB",
        mapped_early, mapped_late);
}

/// Detached threads that end by pthread_exit right after their region, while others are at work.
static int detached_done;

static void* detached(void* argument) {
  Work work = {(int)(long)argument, 3, 3, 0};
  for (int round = 0; round < 3; ++round) one_region(&work, round, 3);
  __atomic_add_fetch(&detached_done, 1, __ATOMIC_ACQ_REL);
  pthread_exit(NULL);
}

static void detached_threads(int count) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < count; ++i) {
    pthread_t handle;
    CHECK(pthread_create(&handle, &attributes, detached, (void*)(long)i) == 0,
          "pthread_create failed");
    Work work = {50, 2, 1, 0};
    one_region(&work, 0, 2);
    if (i % 8 == 7)
      while (__atomic_load_n(&detached_done, __ATOMIC_ACQUIRE) < i - 4) usleep(200);
  }
  while (__atomic_load_n(&detached_done, __ATOMIC_ACQUIRE) < count) usleep(200);
  pthread_attr_destroy(&attributes);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "at-once";
  omp_set_dynamic(0);
  omp_set_max_active_levels(4);
  if (!strcmp(mode, "at-once")) {
    at_once(2, 2, 100);
    at_once(4, 8, 20);
    at_once(8, 3, 20);
  } else if (!strcmp(mode, "endless-spin")) {
    beside_endless(endless_spinner, 2, 2);
  } else if (!strcmp(mode, "endless-spin-many")) {
    beside_endless(endless_spinner, 8, 8);
  } else if (!strcmp(mode, "endless-sleep")) {
    beside_endless(endless_sleeper, 4, 4);
  } else if (!strcmp(mode, "endless-nested")) {
    beside_endless(endless_nested, 2, 4);
  } else if (!strcmp(mode, "short-lived")) {
    short_lived(40, 8);
  } else if (!strcmp(mode, "many-pools")) {
    many_pools(10000);
  } else if (!strcmp(mode, "detached")) {
    detached_threads(80);
  } else {
    fail_at(__LINE__, "unknown mode %s", mode);
  }
  return passed();
}
