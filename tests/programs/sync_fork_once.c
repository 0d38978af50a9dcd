// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that is forked while the function of a bosk_once runs: if another thread runs it, it has not been called
// in the child; the thread that forks inside of it goes on with it there.
#include <bosk/error.h>
#include <bosk/sync.h>
#include <pthread.h>

#include "children.h"

static bosk_once_t once = BOSK_ONCE_INITIALIZER, forks = BOSK_ONCE_INITIALIZER;
static int calls, is_child, runs, go_on;
static pid_t child_of_once;

static void slow(void) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&runs, 1, __ATOMIC_RELEASE);
  while (!is_child && !__atomic_load_n(&go_on, __ATOMIC_ACQUIRE)) sched_yield();
}

static void* call(void* argument) {
  CHECK(bosk_once(&once, slow) == 0, "once");
  return argument;
}

static void forking(void) {
  child_of_once = fork();
  if (child_of_once == 0) is_child = 1;
}

/// `waiting`: a second thread waits for the first one's call, too, as far as one can see.
static void fork_beside(int waiting) {
  pthread_t runner, waiter;
  calls = runs = go_on = 0;
  once = (bosk_once_t)BOSK_ONCE_INITIALIZER;
  CHECK(pthread_create(&runner, NULL, call, NULL) == 0, "no thread");
  while (!__atomic_load_n(&runs, __ATOMIC_ACQUIRE)) sched_yield();
  if (waiting) {
    // It says so by a word that only waiting changes.
    const uint64_t before = once.bosk_private[0];
    CHECK(pthread_create(&waiter, NULL, call, NULL) == 0, "no thread");
    while (__atomic_load_n(&once.bosk_private[0], __ATOMIC_ACQUIRE) == before) sched_yield();
  }
  const pid_t pid = fork();
  if (pid == 0) {
    arm_watchdog(20);
    is_child = 1;
    CHECK(bosk_once(&once, slow) == 0, "once in the child");
    CHECK(calls == 2, "%d calls in the child", calls);
    CHECK(bosk_once(&once, slow) == 0 && calls == 2, "called again in the child");
    _exit(40);
  }
  wait_for_child(pid, 40, "a child");
  __atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
  pthread_join(runner, NULL);
  if (waiting) pthread_join(waiter, NULL);
  CHECK(calls == 1, "%d calls", calls);
}

int main(void) {
  fork_beside(0);
  fork_beside(1);
  int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
  members++;
  CHECK(members == 3, "%d members", members);
  fork_beside(1);
  CHECK(bosk_once(&forks, forking) == 0, "once");
  CHECK(bosk_once(&forks, forking) == 0, "once, done");
  if (is_child) _exit(41);
  wait_for_child(child_of_once, 41, "a child");
  return passed();
}
