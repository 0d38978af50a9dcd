// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// fork: before, after and inside regions; the child goes on using OpenMP.
#include "children.h"

#include <omp.h>
#include <pthread.h>

static int region_sum(int threads) {
  int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
    sum += 1;
#pragma omp barrier
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 100; ++i) sum += 1;
  }
  return sum;
}

static int nested_sum(int outer, int inner) {
  int sum = 0;
#pragma omp parallel num_threads(outer)
#pragma omp parallel num_threads(inner)
  {
#pragma omp atomic
    sum++;
  }
  return sum;
}

static int task_sum(void) {
  int sum = 0;
#pragma omp parallel num_threads(4) shared(sum)
#pragma omp single
  for (int i = 0; i < 50; ++i) {
#pragma omp task shared(sum)
    {
#pragma omp atomic
      sum++;
    }
  }
  return sum;
}

/// Everything a child should be able to do; returns what went wrong, 0 if nothing.
static int use_openmp(void) {
  for (int round = 0; round < 5; ++round) {
    if (region_sum(2) != 102) return 11;
    if (region_sum(8) != 108) return 12;
    if (nested_sum(2, 3) != 6) return 13;
    if (nested_sum(8, 8) != 64) return 14;
    if (task_sum() != 50) return 15;
  }
  return 0;
}

static void child_uses_openmp(const char* what, int grandchildren) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0, "fork: errno %d", errno);
  if (child == 0) {
    arm_watchdog(30);
    int result = use_openmp();
    if (result) _exit(result);
    // A grandchild, and a normal exit with its handlers.
    if (!grandchildren) exit(0);
    pid_t grandchild = fork();
    if (grandchild == 0) {
      arm_watchdog(30);
      exit(use_openmp());
    }
    wait_for_child(grandchild, 0, "grandchild");
    exit(0);
  }
  wait_for_child(child, 0, what);
}

/// One member forks and its child leaves at once; the team goes on.
static void inside_region(int threads) {
  int forked = 0, sum = 0;
#pragma omp parallel num_threads(threads) shared(forked) reduction(+ : sum)
  {
    for (int round = 0; round < 5; ++round) {
#pragma omp barrier
      if (omp_get_thread_num() == round % threads) {
        pid_t child = fork();
        CHECK(child >= 0, "fork: errno %d", errno);
        if (child == 0) _exit(40 + omp_get_thread_num());
        wait_for_child(child, 40 + omp_get_thread_num(), "fork inside a region");
#pragma omp atomic
        forked++;
      }
#pragma omp for schedule(dynamic)
      for (int i = 0; i < 64; ++i) sum++;
    }
  }
  CHECK(forked == 5 && sum == 5 * 64, "%d forks, %d iterations", forked, sum);
}

/// Each member forks in turn; its child, which has that thread only, leaves by pthread_exit, before or after
/// a region of its own. That is its last thread, so it ends with status 0.
static void exit_of_members(int outer, int inner) {
  int forked = 0;
#pragma omp parallel num_threads(outer) shared(forked)
#pragma omp parallel num_threads(inner) shared(forked)
  for (int regions = 0; regions < 2; ++regions) {
#pragma omp critical
    {
      pid_t child = fork();
      CHECK(child >= 0, "fork: errno %d", errno);
      if (child == 0) {
        arm_watchdog(30);
        for (int i = 0; i < regions; ++i)
          if (region_sum(4) != 104) _exit(41);
        pthread_exit(NULL);
      }
      wait_for_child(child, 0, regions ? "pthread_exit after a region" : "pthread_exit");
#pragma omp atomic
      forked++;
    }
  }
  CHECK(forked == 2 * outer * inner, "%d forks", forked);
}

static int stop;

static void* regions_for_ever(void* argument) {
  (void)argument;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
    CHECK(region_sum(4) == 104, "wrong sum beside fork");
  return NULL;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "after";
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (!strcmp(mode, "before")) {
    child_uses_openmp("fork before any region", 0);
    CHECK(use_openmp() == 0, "the parent cannot use OpenMP afterwards");
  } else if (!strcmp(mode, "after")) {
    for (int round = 0; round < 5; ++round) {
      CHECK(use_openmp() == 0, "the parent fails");
      child_uses_openmp("fork after regions", 1);
    }
  } else if (!strcmp(mode, "inside")) {
    inside_region(2);
    inside_region(8);
    CHECK(use_openmp() == 0, "the parent fails afterwards");
  } else if (!strcmp(mode, "exits")) {
    exit_of_members(3, 1);
    exit_of_members(2, 2);
    CHECK(use_openmp() == 0, "the parent fails afterwards");
  } else if (!strcmp(mode, "beside")) {
    // Another pthread is inside regions at the moment of the fork.
    pthread_t handle;
    CHECK(pthread_create(&handle, NULL, regions_for_ever, NULL) == 0, "pthread_create failed");
    CHECK(region_sum(2) == 102, "the parent fails");
    for (int round = 0; round < 10; ++round)
      child_uses_openmp("fork beside regions of another thread", 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(handle, NULL);
  } else {
    fail_at(__LINE__, "unknown mode %s", mode);
  }
  return passed();
}
