/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* learn_waits SECONDS: threads that wait in system calls which end early if a thread is stopped meanwhile, whether a signal has a handler or not, while
 * another one computes and writes. Prints "ok" if each of them ended by its time. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1 << 22, PAGE = 4096, WAIT_MS = 300 };

static volatile int stop;
static volatile int cut;

static void* in_epoll(void* unused) {
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event;
  while (!stop)
    if (epoll_wait(epoll, &event, 1, WAIT_MS) != 0) cut = 1;
  close(epoll);
  return unused;
}

static void* in_sigtimedwait(void* unused) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  struct timespec time = {0, WAIT_MS * 1000000L};
  while (!stop)
    if (sigtimedwait(&one, NULL, &time) != -1 || errno != EAGAIN) cut = 2;
  return unused;
}

static void* in_semtimedop(void* unused) {
  int set = semget(IPC_PRIVATE, 1, 0600);
  struct sembuf take = {0, -1, 0};
  struct timespec time = {0, WAIT_MS * 1000000L};
  while (!stop && set >= 0)
    if (semtimedop(set, &take, 1, &time) != -1 || errno != EAGAIN) cut = 3;
  if (set >= 0) semctl(set, 0, IPC_RMID);
  return unused;
}

static void* in_sleep(void* unused) {
  struct timespec time = {0, WAIT_MS * 1000000L};
  struct timespec left;
  while (!stop)
    if (nanosleep(&time, &left) != 0) cut = 4;
  return unused;
}

int main(int argc, char** argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 1;
  void* (*const waits[])(void*) = {in_epoll, in_sigtimedwait, in_semtimedop, in_sleep};
  enum { WAITS = sizeof waits / sizeof waits[0] };
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, NULL);
  pthread_t threads[WAITS];
  for (int i = 0; i < WAITS; i++) pthread_create(&threads[i], NULL, waits[i], NULL);
  unsigned char* memory = aligned_alloc(PAGE, BYTES);
  memset(memory, 0, BYTES);
  struct timespec began;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &began);
  unsigned long sum = 0;
  unsigned long rounds = 0;
  do {
    for (int i = 0; i < BYTES; i += PAGE) sum += ++memory[i];
    rounds++;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec) <
           seconds);
  stop = 1;
  for (int i = 0; i < WAITS; i++) pthread_join(threads[i], NULL);
  unsigned long wanted = 0;
  for (unsigned long round = 1; round <= rounds; round++) wanted += (round & 255) * (BYTES / PAGE);
  if (sum != wanted) printf("%lu instead of %lu\n", sum, wanted);
  if (cut) printf("wait %d was cut short\n", cut);
  if (sum == wanted && !cut) puts("ok");
  return sum != wanted || cut;
}
