// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/sync.h among members of flat and nested teams, and pthreads that OpenMP does not know.
// sync_teams flat|nested|pthreads|mixed THREADS
#include <bosk/sync.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { kRounds = 200 };

struct shared {
  int threads;
  bosk_mutex_t mutex, recursive;
  bosk_cond_t changed;
  bosk_barrier_t barrier;
  bosk_sem_t free_slots, full_slots;
  bosk_rwlock_t lock;
  bosk_once_t once;
  bosk_key_t key;
  // Guarded by one of these, and not atomic.
  long counted, deep;
  int turn;
  int slots[4];
  long put, got, put_at, got_at;
  long pair[2];
  int serials[kRounds];
  int started;
};

static int once_calls;
static void count_once(void) {
  sched_yield();
  once_calls++;
}

static void recurse(struct shared* s, int depth) {
  CHECK(bosk_mutex_lock(&s->recursive) == 0, "recursive lock");
  s->deep++;
  if (depth > 0) recurse(s, depth - 1);
  CHECK(bosk_mutex_unlock(&s->recursive) == 0, "recursive unlock");
}

/// What each thread does; all of them at once.
static void work(struct shared* s, int me) {
  CHECK(bosk_once(&s->once, count_once) == 0 && once_calls == 1, "once: %d calls", once_calls);
  CHECK(bosk_key_set(s->key, &s->slots[me % 4]) == 0, "key");
  for (int round = 0; round < kRounds; round++) {
    CHECK(bosk_mutex_lock(&s->mutex) == 0, "lock");
    s->counted++;
    CHECK(bosk_mutex_unlock(&s->mutex) == 0, "unlock");
    if (bosk_mutex_lock_until(&s->mutex, bosk_after((uint64_t)(round % 3) * 20000)) == 0) {
      s->counted++;
      bosk_mutex_unlock(&s->mutex);
    } else {
      CHECK(bosk_mutex_lock(&s->mutex) == 0, "lock after a time-out");
      s->counted++;
      bosk_mutex_unlock(&s->mutex);
    }
    recurse(s, round % 3);

    // In turn, by a condition; some wait with deadlines, which must not eat anybody's signal.
    if (round % 20 == 0) {
      bosk_mutex_lock(&s->mutex);
      while (s->turn != me) {
        const int result = (me + round) % 3 == 0
                               ? bosk_cond_wait_until(&s->changed, &s->mutex, bosk_after(50000))
                               : bosk_cond_wait(&s->changed, &s->mutex);
        CHECK(result == 0 || result == BOSK_ETIMEDOUT, "condition: %d", result);
      }
      s->turn = (me + 1) % s->threads;
      bosk_cond_broadcast(&s->changed);
      bosk_mutex_unlock(&s->mutex);
    }

    // Half put what the other half gets.
    if (s->threads % 2 == 0) {
      if (me % 2 == 0) {
        CHECK(bosk_sem_wait(&s->free_slots) == 0, "free slots");
        bosk_mutex_lock(&s->mutex);
        s->slots[s->put_at++ % 4] = me * kRounds + round;
        s->put += me * kRounds + round;
        bosk_mutex_unlock(&s->mutex);
        CHECK(bosk_sem_post(&s->full_slots) == 0, "post");
      } else {
        int result;
        while ((result = bosk_sem_wait_until(&s->full_slots, bosk_after(100000))) != 0)
          CHECK(result == BOSK_ETIMEDOUT, "full slots: %d", result);
        bosk_mutex_lock(&s->mutex);
        s->got += s->slots[s->got_at++ % 4];
        bosk_mutex_unlock(&s->mutex);
        CHECK(bosk_sem_post(&s->free_slots) == 0, "post");
      }
    }

    if ((me + round) % 4 == 0) {
      int result = bosk_rwlock_write_until(&s->lock, bosk_after(30000));
      if (result == BOSK_ETIMEDOUT) result = bosk_rwlock_write(&s->lock);
      CHECK(result == 0, "write: %d", result);
      s->pair[0]++;
      s->pair[1]++;
    } else {
      CHECK(bosk_rwlock_read(&s->lock) == 0, "read");
      CHECK(s->pair[0] == s->pair[1], "a reader beside a writer");
    }
    CHECK(bosk_rwlock_unlock(&s->lock) == 0, "rwlock");

    // Each barrier lets one of them do something.
    const int result = bosk_barrier_wait(&s->barrier);
    CHECK(result == 0 || result == BOSK_BARRIER_SERIAL, "barrier: %d", result);
    if (result == BOSK_BARRIER_SERIAL) s->serials[round]++;
    CHECK(bosk_key_get(s->key) == &s->slots[me % 4], "another thread's value");
  }
}

static void begin(struct shared* s, int threads) {
  memset(s, 0, sizeof *s);
  s->threads = threads;
  once_calls = 0;
  bosk_mutex_init(&s->recursive, BOSK_MUTEX_RECURSIVE);
  bosk_barrier_init(&s->barrier, (uint32_t)threads);
  bosk_sem_init(&s->free_slots, 4);
  bosk_sem_init(&s->full_slots, 0);
  CHECK(bosk_key_create(&s->key, NULL) == 0, "no key");
}

static void end(struct shared* s) {
  const long threads = s->threads;
  CHECK(s->counted == 2 * threads * kRounds, "%ld counted", s->counted);
  long deep = 0;
  for (int round = 0; round < kRounds; round++) deep += 1 + round % 3;
  CHECK(s->deep == deep * threads, "%ld deep", s->deep);
  CHECK(s->put == s->got, "put %ld, got %ld", s->put, s->got);
  for (int round = 0; round < kRounds; round++)
    CHECK(s->serials[round] == 1, "%d serial threads in round %d", s->serials[round], round);
  CHECK(bosk_mutex_destroy(&s->mutex) == 0 && bosk_mutex_destroy(&s->recursive) == 0 &&
            bosk_cond_destroy(&s->changed) == 0 && bosk_barrier_destroy(&s->barrier) == 0 &&
            bosk_sem_destroy(&s->free_slots) == 0 && bosk_sem_destroy(&s->full_slots) == 0 &&
            bosk_rwlock_destroy(&s->lock) == 0 && bosk_key_delete(s->key) == 0,
        "something is still in use");
}

static void flat(int threads) {
  struct shared s;
  begin(&s, threads);
#pragma omp parallel num_threads(threads)
  work(&s, omp_get_thread_num());
  end(&s);
}

static void nested(int threads) {
  struct shared s;
  begin(&s, 3 * threads);
#pragma omp parallel num_threads(3)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(threads)
    work(&s, outer * threads + omp_get_thread_num());
  }
  end(&s);
}

static void* as_pthread(void* argument) {
  struct shared* s = argument;
  work(s, __atomic_fetch_add(&s->started, 1, __ATOMIC_RELAXED));
  return NULL;
}

/// Of `threads` all, or every second one, are pthreads; the rest members.
static void pthreads(int threads, int members) {
  struct shared s;
  begin(&s, threads);
  pthread_t ids[256];
  for (int i = members; i < threads; i++)
    CHECK(pthread_create(&ids[i], NULL, as_pthread, &s) == 0, "pthread_create failed");
  if (members > 0) {
#pragma omp parallel num_threads(members)
    work(&s, __atomic_fetch_add(&s.started, 1, __ATOMIC_RELAXED));
  }
  for (int i = members; i < threads; i++) pthread_join(ids[i], NULL);
  end(&s);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "flat";
  const int threads = argc > 2 ? atoi(argv[2]) : 4;
  omp_set_max_active_levels(3);
  omp_set_dynamic(0);
  for (int time = 0; time < 3; time++) {
    if (strcmp(mode, "flat") == 0) flat(threads);
    if (strcmp(mode, "nested") == 0) nested(threads);
    if (strcmp(mode, "pthreads") == 0) pthreads(threads, 0);
    if (strcmp(mode, "mixed") == 0) pthreads(threads, threads / 2);
  }
  return passed();
}
