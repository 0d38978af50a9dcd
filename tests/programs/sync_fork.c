// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that is forked while others wait, sleep and hold things: in it nobody waits, and all works anew.
// What a thread of the parent held stays held, as with pthreads.
#include <bosk/sync.h>
#include <omp.h>
#include <poll.h>

#include "children.h"

static bosk_mutex_t mutex = BOSK_MUTEX_INITIALIZER, held = BOSK_MUTEX_INITIALIZER;
static bosk_cond_t cond = BOSK_COND_INITIALIZER;
static bosk_sem_t sem;
static bosk_barrier_t barrier;
static bosk_rwlock_t lock = BOSK_RWLOCK_INITIALIZER;
static int ends[2], waiting, over, is_held;

/// In the child, by whoever forked.
static void all_works(void) {
  // A signal, a unit and a way through the barrier are not given to threads of the parent.
  CHECK(bosk_cond_signal(&cond) == 0 && bosk_cond_destroy(&cond) == 0,
        "somebody waits in the child");
  CHECK(bosk_cond_init(&cond) == 0, "init");
  CHECK(bosk_sem_post(&sem) == 0 && bosk_sem_trywait(&sem) == 0, "the unit went to the parent");
  if (is_held) {
    CHECK(bosk_mutex_trylock(&held) == BOSK_EBUSY, "what the parent's thread held is free");
    CHECK(bosk_mutex_lock_until(&held, bosk_after(1000000)) == BOSK_ETIMEDOUT, "no time-out");
  }
  CHECK(bosk_sleep_for(1000000) == 0, "sleep");
  CHECK(bosk_wait_fd(ends[0], POLLIN, bosk_after(1000000)) == BOSK_ETIMEDOUT, "wait_fd");
  int serial = 0, read_bytes = 0, mine[2];
  CHECK(pipe(mine) == 0, "pipe");
#pragma omp parallel num_threads(3) reduction(+ : serial, read_bytes)
  {
    serial += bosk_barrier_wait(&barrier);
    char byte = 'x';
    if (omp_get_thread_num() == 2)
      CHECK(bosk_write(mine[1], "xx", 2) == 2, "write");
    else
      read_bytes += (int)bosk_read(mine[0], &byte, 1);
    bosk_mutex_lock(&mutex);
    waiting = 0;
    bosk_mutex_unlock(&mutex);
  }
  CHECK(serial == BOSK_BARRIER_SERIAL && read_bytes == 2, "%d serial, %d read", serial, read_bytes);
}

static void fork_and_wait(int generations) {
  const pid_t child = fork();
  if (child == 0) {
    arm_watchdog(50);
    all_works();
    if (generations > 1) fork_and_wait(generations - 1);
    _exit(0);
  }
  wait_for_child(child, 0, "the child");
}

int main(void) {
  CHECK(pipe(ends) == 0, "pipe");
  omp_set_max_active_levels(2);  // the child is still inside of the region
  bosk_sem_init(&sem, 0);
  bosk_barrier_init(&barrier, 3);
  // Before anything else exists.
  fork_and_wait(1);
#pragma omp parallel num_threads(7)
  {
    char byte;
    switch (omp_get_thread_num()) {
      case 0:
        // Until all the others wait somewhere, as far as one can see.
        while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) < 6) bosk_sleep_for(100000);
        is_held = 1;
        fork_and_wait(2);
        __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
        bosk_sem_post(&sem);
        CHECK(bosk_write(ends[1], "x", 1) == 1, "write");
        bosk_barrier_wait(&barrier);
        bosk_mutex_lock(&mutex);
        bosk_cond_signal(&cond);
        bosk_mutex_unlock(&mutex);
        break;
      case 1:
        bosk_mutex_lock(&mutex);
        __atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
        while (!over) bosk_cond_wait(&cond, &mutex);
        bosk_mutex_unlock(&mutex);
        break;
      case 2:
        __atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
        CHECK(bosk_sem_wait(&sem) == 0, "the unit did not come");
        break;
      case 3:
        __atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
        CHECK(bosk_read(ends[0], &byte, 1) == 1, "read");
        break;
      case 4:
        bosk_mutex_lock(&held);
        bosk_rwlock_read(&lock);
        __atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) bosk_sleep_for(100000);
        bosk_rwlock_unlock(&lock);
        bosk_mutex_unlock(&held);
        break;
      default:
        __atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
        CHECK(bosk_barrier_wait(&barrier) >= 0, "barrier");
    }
  }
  return passed();
}
