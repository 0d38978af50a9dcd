// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/sync.h among threads of bosk (bosk/bosk.h), ordinary and light ones, in bubbles, beside main and a team.
#include <bosk/bosk.h>
#include <bosk/sync.h>
#include <omp.h>

#include "check.h"

enum { kThreads = 24, kRounds = 100 };

static bosk_mutex_t mutex = BOSK_MUTEX_INITIALIZER, recursive;
static bosk_cond_t cond = BOSK_COND_INITIALIZER;
static bosk_barrier_t barrier;
static bosk_sem_t sem;
static bosk_key_t key;
static long counted, turn;
static int destroyed, ends[2], read_bytes;

static void destroy(void* value) {
  (void)value;
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void* works(void* argument) {
  const long me = (long)argument;
  CHECK(bosk_key_get(key) == NULL, "thread %ld begins with another one's value", me);
  CHECK(bosk_key_set(key, &argument) == 0, "key");
  CHECK(bosk_mutex_trylock(&recursive) == BOSK_EBUSY, "main's mutex is free for thread %ld", me);
  for (int round = 0; round < kRounds; round++) {
    CHECK(bosk_mutex_lock(&mutex) == 0, "lock");
    counted++;
    if (round == 50) {
      while (turn != me) CHECK(bosk_cond_wait(&cond, &mutex) == 0, "condition");
      turn++;
      bosk_cond_broadcast(&cond);
    }
    CHECK(bosk_mutex_unlock(&mutex) == 0, "unlock");
    if (round % 25 == 0) {
      CHECK(bosk_sleep_for(50000) == 0, "sleep");
      CHECK(bosk_barrier_wait(&barrier) >= 0, "barrier");
    }
  }
  if (me % 2 == 0) {
    char byte;
    CHECK(bosk_read(ends[0], &byte, 1) == 1, "read");
    __atomic_add_fetch(&read_bytes, 1, __ATOMIC_RELAXED);
  } else {
    CHECK(bosk_write(ends[1], "x", 1) == 1, "write");
  }
  CHECK(bosk_key_get(key) == &argument, "thread %ld lost its value", me);
  CHECK(bosk_sem_post(&sem) == 0, "post");
  return NULL;
}

int main(int argc, char** argv) {
  const int light = argc > 1 && strcmp(argv[1], "light") == 0;
  CHECK(pipe(ends) == 0, "pipe");
  CHECK(bosk_mutex_init(&recursive, BOSK_MUTEX_RECURSIVE) == 0, "init");
  CHECK(bosk_sem_init(&sem, 0) == 0 && bosk_barrier_init(&barrier, kThreads) == 0, "init");
  CHECK(bosk_key_create(&key, destroy) == 0, "key");
  CHECK(bosk_key_set(key, argv) == 0, "key");
  for (int time = 0; time < 5; time++) {
    counted = turn = read_bytes = destroyed = 0;
    bosk_thread_t threads[kThreads];
    bosk_bubble_t bubbles[2];
    CHECK(bosk_mutex_lock(&recursive) == 0, "lock");
    for (int i = 0; i < 2; i++) CHECK(bosk_bubble_create(&bubbles[i]) == 0, "bubble");
    for (long i = 0; i < kThreads; i++) {
      bosk_thread_attr_t attr;
      bosk_thread_attr_init(&attr);
      attr.light = light;
      if (i % 3 != 0) attr.bubble = bubbles[i % 2];
      const int made = bosk_thread_create(&threads[i], &attr, works, (void*)i);
      CHECK(made == 0, "bosk_thread_create: %s", bosk_strerror(made));
    }
    for (int i = 0; i < 2; i++) CHECK(bosk_bubble_wake(bubbles[i], NULL) == 0, "wake");
    // Main waits with all of them: for units, in a team, and for their ends.
    for (int i = 0; i < kThreads; i++) CHECK(bosk_sem_wait(&sem) == 0, "wait");
#pragma omp parallel num_threads(4)
    {
      CHECK(bosk_mutex_lock(&mutex) == 0, "lock");
      counted++;
      CHECK(bosk_mutex_unlock(&mutex) == 0, "unlock");
    }
    for (int i = 0; i < kThreads; i++) CHECK(bosk_thread_join(threads[i], NULL) == 0, "join");
    for (int i = 0; i < 2; i++) CHECK(bosk_bubble_destroy(bubbles[i]) == 0, "destroy");
    CHECK(bosk_mutex_unlock(&recursive) == 0, "unlock");
    CHECK(counted == kThreads * kRounds + 4, "%ld counted", counted);
    CHECK(turn == kThreads, "%ld turns", turn);
    CHECK(read_bytes == kThreads / 2, "%d bytes", read_bytes);
    CHECK(destroyed == kThreads, "%d values destroyed", destroyed);
    CHECK(bosk_key_get(key) == argv, "main lost its value");
  }
  return passed();
}
