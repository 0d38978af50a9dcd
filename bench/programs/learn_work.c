// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// learn_work KIND TIMES: a fixed amount of work, so many times a quarter of a second or so on two CPUs, of programs that are observed in different ways: stencil (sweeps over memory),
// matrix (in caches), random (writes everywhere), blocks (malloc and free), tasks (no memory), pipeline (producers and consumers), huge (sweeps over
// huge pages), forks (processes). Prints a checksum.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static double sweep(long side, int steps, int huge) {
  size_t bytes = (size_t)(side * side) * sizeof(double);
  double* from = aligned_alloc(2 << 20, bytes);
  double* to = aligned_alloc(2 << 20, bytes);
  madvise(from, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  madvise(to, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (long i = 0; i < side * side; i++) from[i] = to[i] = (double)(i % 97);
  for (int step = 0; step < steps; step++) {
#pragma omp parallel for
    for (long i = 1; i < side - 1; i++)
      for (long j = 1; j < side - 1; j++)
        to[i * side + j] = .25 * (from[(i - 1) * side + j] + from[(i + 1) * side + j] +
                                  from[i * side + j - 1] + from[i * side + j + 1]);
    double* other = from;
    from = to;
    to = other;
  }
  return from[side * side / 2 + side / 2];
}

static double matrix(int times) {
  enum { SIDE = 800 };
  static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) {
      a[i][j] = (double)(i % 13);
      b[i][j] = (double)(j % 7);
    }
  for (int round = 0; round < 4 * times; round++) {
#pragma omp parallel for
    for (int i = 0; i < SIDE; i++)
      for (int k = 0; k < SIDE; k++)
        for (int j = 0; j < SIDE; j++) c[i][j] += a[i][k] * b[k][j];
  }
  return c[SIDE / 2][SIDE / 2];
}

static double random_writes(int times) {
  enum { CELLS = 1 << 24, WRITES = 30000000 };
  unsigned* cells = calloc(CELLS, sizeof *cells);
#pragma omp parallel for
  for (long i = 0; i < (long)times * WRITES; i++) {
    unsigned long x = (unsigned long)i * 0x9e3779b97f4a7c15UL;
#pragma omp atomic
    cells[(x >> 30) % CELLS]++;
  }
  double sum = 0;
  for (long i = 0; i < CELLS; i++) sum += cells[i];
  return sum;
}

static double blocks(int times) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < times * 6000000; i++) {
    size_t size = 1000 + (size_t)(i % 1000) * 60;
    unsigned char* block = malloc(size);
    memset(block, i, size / 8);
    block = realloc(block, 2 * size);
    sum += block[size / 16];
    free(block);
  }
  return sum;
}

static long fibonacci(int n) {
  if (n < 2) return n;
  if (n < 22) return fibonacci(n - 1) + fibonacci(n - 2);
  long a;
#pragma omp task shared(a)
  a = fibonacci(n - 1);
  long b = fibonacci(n - 2);
#pragma omp taskwait
  return a + b;
}

static double tasks(int times) {
  double sum = 0;
  for (int i = 0; i < times; i++) {
    long result = 0;
#pragma omp parallel
#pragma omp single
    result = fibonacci(42);
    sum += (double)result;
  }
  return sum;
}

enum { SLOTS = 64, WORDS = 4096, ITEMS = 200000 };
static long items;
struct ring {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  long written, read;
  unsigned data[SLOTS][WORDS];
};

static void* produce(void* argument) {
  struct ring* ring = argument;
  for (long item = 0; item < items; item++) {
    pthread_mutex_lock(&ring->lock);
    while (ring->written - ring->read == SLOTS) pthread_cond_wait(&ring->changed, &ring->lock);
    pthread_mutex_unlock(&ring->lock);
    for (int i = 0; i < WORDS; i++) ring->data[item % SLOTS][i] = (unsigned)(item + i);
    pthread_mutex_lock(&ring->lock);
    ring->written++;
    pthread_cond_signal(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
  }
  return NULL;
}

static double pipeline(int times) {
  items = (long)times * ITEMS;
  static struct ring ring = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER};
  pthread_t producer;
  pthread_create(&producer, NULL, produce, &ring);
  double sum = 0;
  for (long item = 0; item < items; item++) {
    pthread_mutex_lock(&ring.lock);
    while (ring.written == ring.read) pthread_cond_wait(&ring.changed, &ring.lock);
    pthread_mutex_unlock(&ring.lock);
    unsigned part = 0;
    for (int i = 0; i < WORDS; i++) part ^= ring.data[item % SLOTS][i] + (unsigned)i;
    sum += part;
    pthread_mutex_lock(&ring.lock);
    ring.read++;
    pthread_cond_signal(&ring.changed);
    pthread_mutex_unlock(&ring.lock);
  }
  pthread_join(producer, NULL);
  return sum;
}

static double forks(int times) {
  enum { BYTES = 1 << 20, CHILDREN = 200 };
  unsigned char* memory = malloc(BYTES);
  memset(memory, 1, BYTES);
  double sum = 0;
  for (int i = 0; i < times * CHILDREN; i++) {
    pid_t child = fork();
    if (child == 0) {
      unsigned part = 0;
      for (int round = 0; round < 4; round++)
        for (int at = 0; at < BYTES; at++) part += memory[at] += (unsigned char)round;
      _exit((int)(part % 120));
    }
    int status = 0;
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
  }
  return sum;
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  const int times = argc > 2 ? atoi(argv[2]) : 1;
  double result;
  if (strcmp(kind, "stencil") == 0)
    result = sweep(2048, times * 250, 0);
  else if (strcmp(kind, "huge") == 0)
    result = sweep(2048, times * 250, 1);
  else if (strcmp(kind, "matrix") == 0)
    result = matrix(times);
  else if (strcmp(kind, "random") == 0)
    result = random_writes(times);
  else if (strcmp(kind, "blocks") == 0)
    result = blocks(times);
  else if (strcmp(kind, "tasks") == 0)
    result = tasks(times);
  else if (strcmp(kind, "pipeline") == 0)
    result = pipeline(times);
  else if (strcmp(kind, "forks") == 0)
    result = forks(times);
  else
    return 2;
  printf("%.10g\n", result);
  return 0;
}
