/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* learn_signals SECONDS: threads that get signals all the time, from a timer and from each other, whose handler writes to memory that all use. Prints
 * "ok" if none was lost that was sent to an idle handler. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { THREADS = 3, BYTES = 1 << 22, PAGE = 4096 };

static volatile unsigned char* memory;
static volatile int stop;
static pthread_barrier_t ready;
static long got[THREADS];
static _Thread_local long me;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void on_timer(int number) {
  (void)number;
  memory[BYTES - PAGE]++;
}

static void on_user(int number) {
  (void)number;
  long so_far = __atomic_add_fetch(&got[me], 1, __ATOMIC_RELEASE);
  memory[so_far * PAGE % BYTES]++;
}

static void* work(void* argument) {
  me = (long)argument;
  pthread_barrier_wait(&ready);
  unsigned random = (unsigned)me + 1;
  while (!stop) {
    random = random * 1664525U + 1013904223U;
    memory[(random >> 8) % BYTES]++;
  }
  return NULL;
}

int main(int argc, char** argv) {
  double end = now() + (argc > 1 ? atof(argv[1]) : 1);
  memory = malloc(BYTES);
  memset((unsigned char*)memory, 0, BYTES);
  struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  action.sa_handler = on_user;
  sigaction(SIGUSR1, &action, NULL);
  struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  pthread_barrier_init(&ready, NULL, THREADS + 1);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void*)i);
  pthread_barrier_wait(&ready);
  long sent = 0;
  while (now() < end) {
    long to = sent % THREADS;
    long before = __atomic_load_n(&got[to], __ATOMIC_ACQUIRE);
    if (pthread_kill(threads[to], SIGUSR1) != 0) return 1;
    /* One at a time to each, so that none is merged with another. */
    double patience = now() + 10;
    while (__atomic_load_n(&got[to], __ATOMIC_ACQUIRE) == before)
      if (now() > patience) {
        printf("lost\n");
        return 1;
      }
    sent++;
  }
  stop = 1;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  printf("ok\n");
  return 0;
}
