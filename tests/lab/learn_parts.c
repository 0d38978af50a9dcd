// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// learn_parts KIB WHAT: a thread on each CPU, which the program binds itself, writes to a part of KIB of memory that the first thread has touched; after a
// while each goes on with the part of a CPU of another node. Where the parts are meanwhile:
//   follow        nine tenths of the pages come to the nodes of those that write to them, in both phases; how long that took is printed
//   wander        the same, once, of threads that are not bound: the kernel moves them as it likes until they are kept where their memory is
//   stay          nothing moves
//   placed        nothing moves, since the program has bound the memory
//   attached      nothing moves, since bosk places memory in this process
#include "numa.h"

#include <pthread.h>
#include <time.h>

__attribute__((weak)) int bosk_mem_register(void* begin, size_t bytes);

enum { kMostSeconds = 60, kSecondsToStay = 4, kMostThreads = 64 };

static int threads;
static size_t part;  // bytes
static char* memory;
static int homes[kMostThreads];
static int shift;
static int is_bound = 1;
static int is_over;
static pthread_barrier_t begin;

static void* work(void* argument) {
  const int me = (int)(long)argument;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET((size_t)me, &mine);
  CHECK(!is_bound || sched_setaffinity(0, sizeof mine, &mine) == 0, "CPU %d: %s", me,
        strerror(errno));
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  __atomic_store_n(&homes[me], (int)node, __ATOMIC_RELAXED);
  pthread_barrier_wait(&begin);
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    const int which = (me + __atomic_load_n(&shift, __ATOMIC_RELAXED)) % threads;
    volatile char* at = memory + (size_t)which * part;
    for (size_t i = 0; i < part; i += 64) {
      ++at[i];
#if defined(__x86_64__)
      if (i % kPage == 0) __builtin_ia32_pause();  // the lab's CPUs take turns
#endif
    }
    where_am_i(&cpu, &node);
    __atomic_store_n(&homes[me], (int)node, __ATOMIC_RELAXED);
  }
  return NULL;
}

/// Of 100 pages so many are on the node of who writes to them.
static double local(void) {
  const size_t pages = (size_t)threads * part / kPage;
  int* nodes = malloc(pages * sizeof *nodes);
  CHECK(nodes != NULL, "no memory");
  nodes_of_pages(memory, pages, nodes);
  size_t found = 0;
  for (size_t page = 0; page < pages; ++page) {
    const int which = (int)(page * kPage / part);
    found += nodes[page] ==
             __atomic_load_n(&homes[(which + threads - shift) % threads], __ATOMIC_RELAXED);
  }
  free(nodes);
  return 100.0 * (double)found / (double)pages;
}

static void sleep_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&time, NULL);
}

static void wait_until_local(const char* phase) {
  double seconds = 0;
  while (local() < 90 && seconds < kMostSeconds) {
    sleep_for(.25);
    seconds += .25;
  }
  printf("%s: %.0f %% local after %.2f s\n", phase, local(), seconds);
  CHECK(local() >= 90, "%s: %.1f %% of the pages are where they are used", phase, local());
}

int main(int argc, char** argv) {
  CHECK(argc == 3, "usage: learn_parts KIB follow|wander|stay|placed|attached");
  part = (size_t)atoi(argv[1]) << 10;
  threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
  CHECK(part >= kPage && threads >= 2 && threads <= kMostThreads, "%d threads", threads);
  const size_t bytes = part * (size_t)threads;
  memory = aligned_alloc((size_t)2 << 20, bytes);
  CHECK(memory != NULL, "no memory");
  if (strcmp(argv[2], "placed") == 0) {
    const unsigned long first_node = 1;
    const int bind = 2;
    const size_t whole = (bytes + kPage - 1) / kPage * kPage;
    CHECK(syscall(SYS_mbind, memory, whole, bind, &first_node, 64UL, 0) == 0, "mbind: %s",
          strerror(errno));
  }
  memset(memory, 1, bytes);
  if (strcmp(argv[2], "attached") == 0)
    CHECK(bosk_mem_register != NULL && bosk_mem_register(memory, bytes) == 0, "not on bosk");
  is_bound = strcmp(argv[2], "wander") != 0;
  CHECK(pthread_barrier_init(&begin, NULL, (unsigned)threads + 1) == 0, "barrier");
  pthread_t running[kMostThreads];
  for (long i = 0; i < threads; ++i)
    CHECK(pthread_create(&running[i], NULL, work, (void*)i) == 0, "thread %ld", i);
  pthread_barrier_wait(&begin);
  if (strcmp(argv[2], "follow") == 0) {
    wait_until_local("first");
    __atomic_store_n(&shift, threads / 2, __ATOMIC_RELAXED);
    wait_until_local("then");
  } else if (!is_bound) {
    wait_until_local("wandering");
  } else {
    const double before = local();
    sleep_for(kSecondsToStay);
    printf("%.0f %% local, before %.0f\n", local(), before);
    CHECK(local() == before && before < 60, "%.1f %% local, before %.1f", local(), before);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < threads; ++i) pthread_join(running[i], NULL);
  return 0;
}
