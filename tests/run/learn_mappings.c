/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* learn_mappings SECONDS: threads that map, grow, protect, empty and unmap memory all the time, and look whether it is what they wrote. Prints "ok". */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { THREADS = 3, SLOTS = 64, PAGE = 4096 };

static double end;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct slot {
  unsigned char* at;
  size_t size;
  unsigned char value;
};

static void fill(struct slot* slot) { memset(slot->at, slot->value, slot->size); }

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static void change(struct slot* slot, unsigned random) {
  size_t size = (size_t)(1 + (random >> 4) % 200) * PAGE;
  if (slot->at == NULL) {
    slot->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slot->at == MAP_FAILED) fail("mmap");
    slot->size = size;
    slot->value = (unsigned char)(random >> 12);
    fill(slot);
    return;
  }
  for (size_t at = 0; at < slot->size; at += PAGE)
    if (slot->at[at] != slot->value || slot->at[at + PAGE - 1] != slot->value) {
      printf("lost\n");
      exit(1);
    }
  switch (random % 4) {
    case 0:
      munmap(slot->at, slot->size);
      slot->at = NULL;
      break;
    case 1:
      slot->at = mremap(slot->at, slot->size, size, MREMAP_MAYMOVE);
      if (slot->at == MAP_FAILED) fail("mremap");
      slot->size = size;
      fill(slot);
      break;
    case 2:
      if (mprotect(slot->at, slot->size, PROT_READ) != 0) fail("mprotect");
      if (mprotect(slot->at, slot->size, PROT_READ | PROT_WRITE) != 0) fail("mprotect");
      slot->value ^= 1;
      fill(slot);
      break;
    default:
      if (madvise(slot->at, slot->size, MADV_DONTNEED) != 0) fail("madvise");
      fill(slot);
  }
}

static void* work(void* argument) {
  unsigned random = (unsigned)(long)argument + 1;
  struct slot slots[SLOTS] = {0};
  while (now() < end)
    for (int i = 0; i < 20; i++) {
      random = random * 1664525U + 1013904223U;
      change(&slots[(random >> 8) % SLOTS], random >> 14);
    }
  return NULL;
}

int main(int argc, char** argv) {
  end = now() + (argc > 1 ? atof(argv[1]) : 1);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  printf("ok\n");
  return 0;
}
