// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers are made for the first bubble or thread, outside of all regions, while another thread pauses the runtime again and
// again. In children: it is made once.
#include "bosk_check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>

enum { kChildren = 40, kRegions = 5 };

static int stop;

static void* pause_always(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) omp_pause_resource_all(omp_pause_hard);
  return unused;
}

static void in_child(int round) {
  pthread_t pauses;
  CHECK(pthread_create(&pauses, NULL, pause_always, NULL) == 0, "pthread_create failed");
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  OK(bosk_bubble_destroy(bubble));
  for (int region = 0; region < kRegions; ++region) {
    int members = 0;
#pragma omp parallel num_threads(2 + round % 3) reduction(+ : members)
    members++;
    CHECK(members == 2 + round % 3, "%d members", members);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  CHECK(pthread_join(pauses, NULL) == 0, "pthread_join failed");
}

int main(void) {
  for (int round = 0; round < kChildren; ++round) {
    const pid_t child = fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0) {
      arm_watchdog(20);
      in_child(round);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child %d: status %x", round, status);
  }
  return passed();
}
