// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads of bosk.h and OpenMP together: regions inside of threads, threads made and joined by members.
#include "bosk_check.h"

#include <omp.h>
#include <stdint.h>

static long sum_to(int n, int members) {
  long sum = 0;
#pragma omp parallel for num_threads(members) reduction(+ : sum)
  for (int i = 1; i <= n; ++i) sum += i;
  return sum;
}

// In a thread it is as outside of all regions.
static void* region(void* argument) {
  const int members = (int)(intptr_t)argument;
  CHECK(omp_get_level() == 0 && omp_get_num_threads() == 1 && omp_get_thread_num() == 0 &&
            !omp_in_parallel(),
        "level %d, thread %d of %d", omp_get_level(), omp_get_thread_num(), omp_get_num_threads());
  for (int i = 0; i < 20; ++i) {
    const long sum = sum_to(1000, members);
    CHECK(sum == 500500, "sum %ld", sum);
  }
  const bosk_thread_t me = bosk_thread_self();
  CHECK(me != NULL, "no handle");
#pragma omp parallel num_threads(members)
  {
    CHECK(omp_get_level() == 1 && omp_get_num_threads() == members, "level %d, %d threads",
          omp_get_level(), omp_get_num_threads());
    if (omp_get_thread_num() == 0)
      CHECK(bosk_thread_self() == me && bosk_thread_exit(NULL) == BOSK_EPERM,
            "member 0 is another thread");
#pragma omp barrier
#pragma omp single
#pragma omp task
    CHECK(omp_get_level() == 1, "level %d", omp_get_level());
  }
  int value = 0;
#pragma omp task shared(value)
  value = 1;
#pragma omp taskwait
  CHECK(value == 1, "the task has not run");
  return (void*)(intptr_t)members;
}
static void regions(void) {
  enum { kThreads = 12 };
  bosk_thread_t thread[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i)
    OK(bosk_thread_create(&thread[i], NULL, region, (void*)(i % 5 + 1)));
  for (intptr_t i = 0; i < kThreads; ++i) {
    void* result;
    OK(bosk_thread_join(thread[i], &result));
    CHECK((intptr_t)result == i % 5 + 1, "result %ld", (long)(intptr_t)result);
  }
  CHECK(sum_to(100, 4) == 5050, "main's sum");
}

static void* twice(void* argument) { return (void*)(2 * (intptr_t)argument); }

// Members, in flat and nested regions, make threads and wait for them and for each other's.
static bosk_thread_t made[64];
static void by_members(void) {
  for (int round = 0; round < 20; ++round) {
#pragma omp parallel num_threads(2 + round % 7)
    {
      const intptr_t me = omp_get_thread_num();
      const intptr_t members = omp_get_num_threads();
      OK(bosk_thread_create(&made[me], NULL, twice, (void*)me));
#pragma omp barrier
      void* result;
      const intptr_t other = (me + 1) % members;
      OK(bosk_thread_join(made[other], &result));
      CHECK((intptr_t)result == 2 * other, "result %ld", (long)(intptr_t)result);
#pragma omp parallel num_threads(3)
      {
        bosk_thread_t inner;
        OK(bosk_thread_create(&inner, NULL, region, (void*)2));
        OK(bosk_thread_join(inner, NULL));
#pragma omp barrier
      }
    }
  }
}

// A bubble that members fill, whose threads open regions.
static void bubbles(void) {
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = bubble;
  attr.detached = 1;
#pragma omp parallel num_threads(4)
  for (int i = 0; i < 5; ++i) OK(bosk_thread_create(NULL, &attr, region, (void*)(intptr_t)(i + 1)));
  OK(bosk_bubble_wake(bubble, NULL));
#pragma omp parallel num_threads(3)
  OK(bosk_bubble_join(bubble));
  OK(bosk_bubble_destroy(bubble));
}

// Threads that have not ended keep the workers from being paused; afterwards they may be, and come again.
static int flag;
static void* wait_for_flag(void* argument) {
  while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) OK(bosk_thread_yield());
  return argument;
}
static void pauses(void) {
  for (int i = 0; i < 5; ++i) {
    __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
    bosk_thread_t thread;
    OK(bosk_thread_create(&thread, NULL, wait_for_flag, NULL));
    CHECK(omp_pause_resource_all(omp_pause_hard) != 0, "paused while a thread lives");
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    OK(bosk_thread_join(thread, NULL));
    CHECK(sum_to(100, 3) == 5050, "sum");
    CHECK(omp_pause_resource_all(omp_pause_hard) == 0, "not paused, with no thread alive");
  }
}

int main(int argc, char** argv) {
  omp_set_max_active_levels(4);
  static const struct test kTests[] = {
      {"regions", regions}, {"members", by_members}, {"bubbles", bubbles}, {"pauses", pauses}};
  return RUN_TEST(argc, argv, kTests);
}
