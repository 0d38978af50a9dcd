// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A million light threads, all of them alive at once, in a bounded amount of memory.
#include "bosk_check.h"

enum { kThreads = 1000000, kBytesEach = 320 };

static bosk_thread_t thread[kThreads];
static long ran;
static void* add_one(void* argument) {
  __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
  return argument;
}

static long resident_bytes(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long size = 0;
  long resident = 0;
  CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2, "no /proc/self/statm");
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

int main(void) {
  bosk_bubble_t bubble;
  OK(bosk_bubble_create(&bubble));
  memset(thread, 1, sizeof thread);
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.light = 1;
  attr.bubble = bubble;
  long before = resident_bytes();
  for (int round = 0; round < 2; ++round) {
    // In a bubble that is asleep none of them runs: all are there at once.
    for (int i = 0; i < kThreads; ++i) OK(bosk_thread_create(&thread[i], &attr, add_one, NULL));
    const long bytes = resident_bytes() - before;
    CHECK(bytes < (long)kThreads * kBytesEach, "%ld bytes a thread", bytes / kThreads);
    CHECK(round == 0 || bytes < 64l << 20, "%ld MiB more in the second round", bytes >> 20);
    if (round == 0) OK(bosk_bubble_wake(bubble, NULL));
    for (int i = 0; i < kThreads; ++i) OK(bosk_thread_join(thread[i], NULL));
    CHECK(ran == (long)(round + 1) * kThreads, "%ld ran", ran);
    before = resident_bytes();
  }
  OK(bosk_bubble_destroy(bubble));
  return passed();
}
