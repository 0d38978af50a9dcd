// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Team members that block each other with pthread barriers, condition variables and semaphores.
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <semaphore.h>

/// Members meet in a pthread barrier; between two meetings each adds its share.
static void barrier_rounds(int threads, int rounds) {
  pthread_barrier_t barrier;
  CHECK(pthread_barrier_init(&barrier, NULL, (unsigned)threads) == 0,
        "pthread_barrier_init failed");
  int arrived = 0, serial = 0;
#pragma omp parallel num_threads(threads) shared(barrier, arrived, serial)
  {
    CHECK(omp_get_num_threads() == threads, "team of %d, wanted %d", omp_get_num_threads(),
          threads);
    for (int round = 1; round <= rounds; ++round) {
#pragma omp atomic
      arrived++;
      int result = pthread_barrier_wait(&barrier);
      CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD, "pthread_barrier_wait: %d",
            result);
      if (result == PTHREAD_BARRIER_SERIAL_THREAD) {
#pragma omp atomic
        serial++;
      }
      int seen;
#pragma omp atomic read
      seen = arrived;
      CHECK(seen >= round * threads, "round %d: only %d arrivals", round, seen);
      pthread_barrier_wait(&barrier);
      if (round % 4 == 0) {
#pragma omp barrier
      }
    }
  }
  CHECK(arrived == rounds * threads, "%d arrivals, expected %d", arrived, rounds * threads);
  CHECK(serial == rounds, "%d serial threads, expected %d", serial, rounds);
  CHECK(pthread_barrier_destroy(&barrier) == 0, "pthread_barrier_destroy failed");
}

static void nested_barriers(int outer, int inner, int rounds) {
  pthread_barrier_t everybody;
  pthread_barrier_init(&everybody, NULL, (unsigned)(outer * inner));
  int total = 0;
#pragma omp parallel num_threads(outer) shared(everybody, total)
  {
    pthread_barrier_t mine;
    pthread_barrier_init(&mine, NULL, (unsigned)inner);
    int count = 0;
#pragma omp parallel num_threads(inner) shared(everybody, total, mine, count)
    {
      CHECK(omp_get_num_threads() == inner, "inner team of %d", omp_get_num_threads());
      for (int round = 1; round <= rounds; ++round) {
#pragma omp atomic
        count++;
        pthread_barrier_wait(&mine);
        int seen;
#pragma omp atomic read
        seen = count;
        CHECK(seen >= round * inner, "inner round %d: %d arrivals", round, seen);
#pragma omp atomic
        total++;
        pthread_barrier_wait(&everybody);
#pragma omp atomic read
        seen = total;
        CHECK(seen >= round * outer * inner, "round %d: %d arrivals", round, seen);
      }
    }
    pthread_barrier_destroy(&mine);
  }
  CHECK(total == rounds * outer * inner, "%d arrivals in all", total);
}

/// A bounded queue: half of the members produce, the others consume.
static void bounded_queue(int threads, int items_each) {
  enum { kCapacity = 3 };
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
  int buffer[kCapacity], head = 0, used = 0;
  long produced = 0, consumed = 0;
  int producers = threads / 2;
  int consumed_items = 0, all_items = producers * items_each;
#pragma omp parallel num_threads(threads)                                  \
    shared(mutex, not_full, not_empty, buffer, head, used, consumed_items) \
    reduction(+ : produced, consumed)
  {
    int me = omp_get_thread_num();
    CHECK(omp_get_num_threads() == threads, "team of %d, wanted %d", omp_get_num_threads(),
          threads);
    if (me < producers) {
      for (int i = 0; i < items_each; ++i) {
        int item = me * items_each + i + 1;
        pthread_mutex_lock(&mutex);
        while (used == kCapacity) pthread_cond_wait(&not_full, &mutex);
        buffer[(head + used++) % kCapacity] = item;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
        produced += item;
      }
    } else {
      for (;;) {
        pthread_mutex_lock(&mutex);
        while (used == 0 && consumed_items < all_items) pthread_cond_wait(&not_empty, &mutex);
        if (used == 0) {
          pthread_mutex_unlock(&mutex);
          break;
        }
        int item = buffer[head];
        head = (head + 1) % kCapacity;
        used--;
        if (++consumed_items == all_items) pthread_cond_broadcast(&not_empty);
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
        consumed += item;
      }
    }
  }
  CHECK(consumed_items == all_items, "%d items consumed of %d", consumed_items, all_items);
  CHECK(produced == consumed, "produced %ld, consumed %ld", produced, consumed);
}

/// Turn-taking through one condition: every wake-up goes to a member that sleeps in the kernel.
static void turns(int threads, int rounds) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  int turn = 0;
#pragma omp parallel num_threads(threads) shared(mutex, changed, turn)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < rounds; ++round) {
      pthread_mutex_lock(&mutex);
      while (turn % threads != me) pthread_cond_wait(&changed, &mutex);
      CHECK(turn == round * threads + me, "turn %d in round %d of thread %d", turn, round, me);
      turn++;
      pthread_cond_broadcast(&changed);
      pthread_mutex_unlock(&mutex);
    }
  }
  CHECK(turn == threads * rounds, "%d turns, expected %d", turn, threads * rounds);
}

static void semaphores(int threads, int rounds) {
  sem_t* semaphore = malloc(sizeof(sem_t) * (size_t)threads);
  CHECK(semaphore, "no memory");
  for (int i = 0; i < threads; ++i) sem_init(&semaphore[i], 0, i == 0);
  int steps = 0;
#pragma omp parallel num_threads(threads) shared(steps)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < rounds; ++round) {
      while (sem_wait(&semaphore[me])) CHECK(errno == EINTR, "sem_wait: errno %d", errno);
      CHECK(steps == round * threads + me, "step %d by thread %d in round %d", steps, me, round);
      steps++;
      sem_post(&semaphore[(me + 1) % threads]);
    }
  }
  CHECK(steps == threads * rounds, "%d steps, expected %d", steps, threads * rounds);
  for (int i = 0; i < threads; ++i) sem_destroy(&semaphore[i]);
  free(semaphore);
}

/// Members pass bytes through pipes: they block in read(2).
static void pipes(int threads, int rounds) {
  int(*ends)[2] = malloc(sizeof(int[2]) * (size_t)threads);
  CHECK(ends, "no memory");
  for (int i = 0; i < threads; ++i) CHECK(pipe(ends[i]) == 0, "pipe: errno %d", errno);
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < rounds; ++round) {
      unsigned char byte = (unsigned char)round, got = 0;
      if (me == 0) CHECK(write(ends[1 % threads][1], &byte, 1) == 1, "write: errno %d", errno);
      ssize_t size;
      while ((size = read(ends[me][0], &got, 1)) < 0 && errno == EINTR) {
      }
      CHECK(size == 1 && got == byte, "thread %d round %d: read %zd, byte %d", me, round, size,
            got);
      if (me != 0)
        CHECK(write(ends[(me + 1) % threads][1], &got, 1) == 1, "write: errno %d", errno);
    }
  }
  for (int i = 0; i < threads; ++i) {
    close(ends[i][0]);
    close(ends[i][1]);
  }
  free(ends);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "all";
  int all = !strcmp(mode, "all");
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (all || !strcmp(mode, "barrier")) {
    barrier_rounds(8, 60);
    barrier_rounds(2, 100);
    for (int i = 0; i < 20; ++i) barrier_rounds(2 + i % 7, 5);
  }
  if (all || !strcmp(mode, "nested-barrier")) {
    nested_barriers(2, 4, 30);
    nested_barriers(4, 2, 30);
  }
  if (all || !strcmp(mode, "queue")) {
    bounded_queue(8, 200);
    bounded_queue(2, 200);
  }
  if (all || !strcmp(mode, "turns")) turns(8, 40);
  if (all || !strcmp(mode, "semaphores")) semaphores(8, 40);
  if (all || !strcmp(mode, "pipes")) pipes(8, 40);
  return passed();
}
