/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* learn_pattern PATTERN THREADS SECONDS: threads that write to each other's pages in a known pattern: ring, far, all, private. Prints the number that
 * the kernel gives each thread, and the truth: for each pair, the sum over pages of the product of their writes by all writes, which is how often the
 * one would be found after the other. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 256, MOST = 64 };

static char pattern;
static int threads;
static volatile char* memory;
static volatile int stop;
static pthread_barrier_t ready;
static long numbers[MOST];
static unsigned* writes[MOST]; /* by page */

static int block_of(int me, unsigned random) {
  int is_away = random % 4 == 0;
  switch (pattern) {
    case 'r':
      return is_away ? (me + 1) % threads : me;
    case 'f':
      return is_away ? (me + threads / 2) % threads : me;
    case 'a':
      return (int)(random / 4 % (unsigned)threads);
    default:
      return me;
  }
}

static void* work(void* argument) {
  int me = (int)(long)argument;
  unsigned random = (unsigned)me + 1;
  numbers[me] = syscall(SYS_gettid);
  pthread_barrier_wait(&ready);
  while (!stop) {
    random = random * 1664525U + 1013904223U;
    int page = block_of(me, random >> 20) * PAGES + (int)(random >> 8) % PAGES;
    memory[(long)page * PAGE + me]++;
    writes[me][page]++;
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  pattern = argv[1][0];
  threads = atoi(argv[2]);
  if (threads < 2 || threads > MOST) return 2;
  size_t pages = (size_t)threads * PAGES;
  memory = aligned_alloc(PAGE, pages * PAGE);
  memset((char*)memory, 0, pages * PAGE);
  pthread_barrier_init(&ready, NULL, (unsigned)threads);
  pthread_t running[MOST];
  for (long i = 0; i < threads; i++) {
    writes[i] = calloc(pages, sizeof *writes[i]);
    pthread_create(&running[i], NULL, work, (void*)i);
  }
  double seconds = atof(argv[3]);
  struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&pause, NULL);
  stop = 1;
  for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
  unsigned long sum = 0;
  unsigned long counted = 0;
  for (int a = 0; a < threads; a++) {
    printf("%ld", numbers[a]);
    for (int b = 0; b < threads; b++) {
      double shared = 0;
      for (size_t page = 0; page < pages; page++) {
        double all = 0;
        for (int t = 0; t < threads; t++) all += writes[t][page];
        if (a != b && all > 0) shared += (double)writes[a][page] * writes[b][page] / all;
      }
      printf(" %.6g", shared);
    }
    printf("\n");
    for (size_t page = 0; page < pages; page++) {
      counted += writes[a][page] % 256;
      sum += (unsigned char)memory[page * PAGE + (size_t)a];
    }
  }
  /* Each byte is one thread's: nothing may be lost, whoever looks. */
  return (sum - counted) % 256 == 0 ? 0 : 1;
}
