// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nested members block in the kernel for what another team's opener does after its first region has ended.
//   crossed_waits read|poll|semaphore|condition [MEMBERS]
#include "hard.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

enum { kOuter = 4, kInner = 32, kRounds = 8 };

static int pipes[kOuter][kInner][2];
static sem_t semaphores[kOuter][kInner];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int given[kOuter][kInner];

static void give(const char* mode, int team, int member) {
  if (is(mode, "semaphore")) {
    sem_post(&semaphores[team][member]);
  } else if (is(mode, "condition")) {
    pthread_mutex_lock(&mutex);
    ++given[team][member];
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
  } else {
    CHECK(write(pipes[team][member][1], "x", 1) == 1, "write: errno %d", errno);
  }
}

static void take(const char* mode, int team, int member) {
  if (is(mode, "semaphore")) {
    CHECK(sem_wait(&semaphores[team][member]) == 0, "sem_wait: errno %d", errno);
  } else if (is(mode, "condition")) {
    pthread_mutex_lock(&mutex);
    while (given[team][member] == 0) pthread_cond_wait(&condition, &mutex);
    --given[team][member];
    pthread_mutex_unlock(&mutex);
  } else {
    const int fd = pipes[team][member][0];
    char byte;
    if (is(mode, "poll")) {
      struct pollfd wanted = {fd, POLLIN, 0};
      const int ready = poll(&wanted, 1, -1);
      CHECK(ready == 1, "poll without a time-out: %d, errno %d", ready, errno);
    }
    const ssize_t got = read(fd, &byte, 1);
    CHECK(got == 1, "read: %zd, errno %d", got, errno);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (!is(mode, "read") && !is(mode, "poll") && !is(mode, "semaphore") && !is(mode, "condition"))
    no_such_mode();
  const int members = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  const int outer = members < 2 ? 2 : members < kOuter ? members : kOuter;
  int inner = members / outer;
  if (inner < 2) inner = 2;
  if (inner > kInner) inner = kInner;
  for (int t = 0; t < outer; ++t)
    for (int m = 0; m < inner; ++m) {
      CHECK(pipe(pipes[t][m]) == 0, "pipe: errno %d", errno);
      sem_init(&semaphores[t][m], 0, 0);
    }
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  int taken = 0;
#pragma omp parallel num_threads(outer) reduction(+ : taken)
  {
    const int team = omp_get_thread_num();
    for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(inner)
      compute(1 + 3 * ((team + round) % outer));
      for (int m = 0; m < inner; ++m) give(mode, (team + 1) % outer, m);
#pragma omp parallel num_threads(inner) reduction(+ : taken)
      {
        take(mode, team, omp_get_thread_num());
        ++taken;
      }
    }
  }
  CHECK(taken == outer * inner * kRounds, "%d taken", taken);
  return passed();
}
