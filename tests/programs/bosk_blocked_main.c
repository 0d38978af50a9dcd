// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that may run on main's PU only, while main does not come: it waits in the kernel for one of them, or
// computes until one of them tells it to stop. Where ticks come, they share the PU; where none do, somebody else
// runs them, for a hint is not worth a program that stands still.
#include "bosk_check.h"

#include <semaphore.h>

enum { kThreads = 20 };

static sem_t ended;
static int stop;

static void* post(void* argument) {
  sem_post(&ended);
  return argument;
}
static void* tell(void* argument) {
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  return argument;
}

int main(void) {
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.level = attr.affinity = "pu";
  CHECK(sem_init(&ended, 0, 0) == 0, "sem_init");
  for (int round = 0; round < 5; ++round) {
    bosk_thread_t thread[kThreads];
    for (int i = 0; i < kThreads; ++i) OK(bosk_thread_create(&thread[i], &attr, post, NULL));
    for (int i = 0; i < kThreads; ++i)
      while (sem_wait(&ended) != 0) continue;
    for (int i = 0; i < kThreads; ++i) OK(bosk_thread_join(thread[i], NULL));
    stop = 0;
    OK(bosk_thread_create(&thread[0], &attr, tell, NULL));
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) continue;
    OK(bosk_thread_join(thread[0], NULL));
  }
  return passed();
}
