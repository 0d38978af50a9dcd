// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads of the program's own that open regions, one at a time, behind a lock that they poll for: as a BLAS does with one set of buffers
// that several threads call.
//   outside lock | calls | ends | phases; with WITH_KILL, which imports pthread_kill: signals
#include "hard.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { kThreads = 6, kRounds = 40, kShort = 50 };

static atomic_bool taken;
static atomic_long ended;
static long sum;  // by whoever has the lock

static void take(void) {
  bool free = false;
  while (!atomic_compare_exchange_weak(&taken, &free, true)) free = false;
}

static void use_library(void) {
  const int size = omp_get_max_threads();
  take();
  long part = 0, members = 0;
#pragma omp parallel num_threads(size) reduction(+ : part, members)
  {
    members += 1;
    for (int i = 0; i < 20000; i++) part += (i ^ omp_get_thread_num()) & 1;
  }
  sum += part == 10000 * members;
  atomic_store(&taken, false);
}

static void* user(void* rounds) {
  for (long i = 0; i < (long)rounds; i++) use_library();
  atomic_fetch_add(&ended, 1);
  return NULL;
}

static void run(pthread_t* threads, long rounds) {
  for (int i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, user, (void*)rounds);
}

static void join(pthread_t* threads) {
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
}

static void lock(void) {
  pthread_t threads[kThreads];
  run(threads, kRounds);
  join(threads);
  CHECK(sum == kThreads * kRounds, "%ld uses of %d were right", sum, kThreads * kRounds);
}

#ifdef WITH_KILL
#include <signal.h>

static atomic_long handled;

static void count(int number) {
  (void)number;
  atomic_fetch_add(&handled, 1);
}

/// Signals that are sent to those that poll arrive.
static void signals(void) {
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t threads[kThreads];
  run(threads, kRounds);
  long sent = 0;
  while (atomic_load(&ended) == 0) {
    // Joined below, so they are there.
    CHECK(pthread_kill(threads[sent % kThreads], SIGUSR1) == 0, "signal %ld", sent);
    const long now = ++sent;
    while (atomic_load(&handled) < now && atomic_load(&ended) == 0) poll(NULL, 0, 1);
  }
  join(threads);
  CHECK(sum == kThreads * kRounds, "%ld uses of %d were right", sum, kThreads * kRounds);
  CHECK(atomic_load(&handled) >= sent - 1, "%ld signals of %ld arrived", atomic_load(&handled),
        sent);
}

#endif

static void* sleeper(void* unused) {
  (void)unused;
  use_library();
  long cut = 0;
  while (atomic_load(&ended) < kThreads) {
    // Some work, for who does none needs no look.
    for (volatile int i = 0; i < 300000; i++) continue;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    const int result = poll(NULL, 0, 5);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const long us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
    cut += result != 0 || us < 4900;
  }
  return (void*)cut;
}

/// A thread outside of regions that computes and sleeps is not interrupted.
static void calls(void) {
  pthread_t threads[kThreads], other;
  pthread_create(&other, NULL, sleeper, NULL);
  run(threads, kRounds);
  join(threads);
  void* cut;
  pthread_join(other, &cut);
  CHECK((long)cut == 0, "%ld calls were cut", (long)cut);
  CHECK(sum == kThreads * kRounds + 1, "%ld uses were right", sum);
}

/// They end while others poll, and new ones come.
static void ends(void) {
  for (int i = 0; i < kRounds; i++) {
    pthread_t threads[kThreads];
    run(threads, 1);
    join(threads);
  }
  CHECK(sum == kThreads * kRounds, "%ld uses of %d were right", sum, kThreads * kRounds);
}

static atomic_long arrived;

static void* phase(void* unused) {
  (void)unused;
  for (long i = 1; i <= kShort; i++) {
    long part = 0;
#pragma omp parallel reduction(+ : part)
    for (int k = 0; k < 5000; k++) part += k & 1;
    if (part != 2500L * omp_get_max_threads()) return (void*)1;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load_explicit(&arrived, memory_order_acquire) < i * kThreads) continue;
  }
  return NULL;
}

/// A barrier of the threads' own between their regions.
static void phases(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, phase, NULL);
  for (int i = 0; i < kThreads; i++) {
    void* wrong;
    pthread_join(threads[i], &wrong);
    CHECK(wrong == NULL, "a sum of thread %d is wrong", i);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "lock") == 0) {
    lock();
#ifdef WITH_KILL
  } else if (strcmp(mode, "signals") == 0) {
    signals();
#endif
  } else if (strcmp(mode, "calls") == 0) {
    calls();
  } else if (strcmp(mode, "ends") == 0) {
    ends();
  } else if (strcmp(mode, "phases") == 0) {
    phases();
  } else {
    fail_at(__LINE__, "usage: outside MODE");
  }
  puts("ok");
  return 0;
}
