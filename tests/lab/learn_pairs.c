// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// learn_pairs follow|stay: a thread for each CPU, bound by nobody; each writes to what it shares with the one half of all further on, later with its neighbour.
//   follow   all pairs but one come to one node each, in both phases; and who asks how many CPUs there are is told of all of them: the first thread, a
//            child of it, a thread and a child that a moved thread makes
//   stay     all threads may run on all CPUs, all the time
#include "numa.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

enum { kMostSeconds = 60, kSecondsToStay = 4, kMostThreads = 64, kShared = 16 * kPage };

static int threads;
static char* memory;  // of each pair kShared
static int is_late;   // phase
static int is_over;
static int wants_child = -1;  ///< the thread that is to make a thread and a child
static int node_of[kMostThreads];
static long numbers[kMostThreads];
static pthread_barrier_t begin;

static int pair_of(int me, int late) { return late ? me / 2 : me % (threads / 2); }

static int cpus_allowed(pid_t thread) {
  cpu_set_t cpus;
  CHECK(sched_getaffinity(thread, sizeof cpus, &cpus) == 0, "%d: %s", thread, strerror(errno));
  return CPU_COUNT(&cpus);
}

static void sleep_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&time, NULL);
}

/// A moment later, for it is given back from outside.
static void* check_all_cpus(void* who) {
  int cpus = 0;
  for (int i = 0; i < 100 && cpus != threads; ++i) {
    cpus = cpus_allowed(0);
    if (cpus != threads) sleep_for(.05);
  }
  CHECK(cpus == threads, "%s may run on %d of %d CPUs", (const char*)who, cpus, threads);
  return NULL;
}

static void check_child(const char* who) {
  const pid_t child = fork();
  CHECK(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    check_all_cpus((void*)who);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "%s: status %d", who, status);
}

static void* work(void* argument) {
  const int me = (int)(long)argument;
  numbers[me] = syscall(SYS_gettid);
  pthread_barrier_wait(&begin);
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    volatile char* at =
        memory + (size_t)pair_of(me, __atomic_load_n(&is_late, __ATOMIC_RELAXED)) * kShared;
    for (size_t i = 0; i < kShared; i += 64) {
      ++at[i + (size_t)me % 64];
#if defined(__x86_64__)
      if (i % kPage == 0) __builtin_ia32_pause();  // the lab's CPUs take turns
#endif
    }
    unsigned cpu;
    unsigned node;
    where_am_i(&cpu, &node);
    __atomic_store_n(&node_of[me], (int)node, __ATOMIC_RELAXED);
    if (__atomic_load_n(&wants_child, __ATOMIC_RELAXED) != me) continue;
    check_child("a child of a moved thread");
    pthread_t made;
    CHECK(pthread_create(&made, NULL, check_all_cpus, "a thread of a moved thread") == 0, "thread");
    pthread_join(made, NULL);
    __atomic_store_n(&wants_child, -1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/// Of 100 pairs so many are on one node.
static double together(void) {
  int found = 0;
  for (int a = 0; a < threads; ++a)
    for (int b = 0; b < a; ++b)
      found += pair_of(a, is_late) == pair_of(b, is_late) &&
               __atomic_load_n(&node_of[a], __ATOMIC_RELAXED) ==
                   __atomic_load_n(&node_of[b], __ATOMIC_RELAXED);
  return 200.0 * found / threads;
}

static int narrowed(void) {
  int found = 0;
  for (int i = 0; i < threads; ++i) found += cpus_allowed((pid_t)numbers[i]) < threads;
  return found;
}

static void wait_until_together(const char* phase) {
  double seconds = 0;
  const double wanted = 100 - 200.0 / threads;
  while ((together() < wanted || narrowed() < threads / 2) && seconds < kMostSeconds) {
    sleep_for(.25);
    seconds += .25;
  }
  printf("%s: %.0f %% of the pairs on one node after %.2f s, %d threads moved\n", phase, together(),
         seconds, narrowed());
  for (int i = 0; i < threads && together() < wanted; ++i)
    printf("thread %ld of pair %d: node %d, %d CPUs\n", numbers[i], pair_of(i, is_late), node_of[i],
           cpus_allowed((pid_t)numbers[i]));
  fflush(stdout);
  CHECK(together() >= wanted && narrowed() >= threads / 2,
        "%s: %.1f %% of the pairs are on one node", phase, together());
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: learn_pairs follow|stay");
  threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
  CHECK(threads >= 4 && threads <= kMostThreads && threads % 2 == 0, "%d threads", threads);
  memory = aligned_alloc(kPage, (size_t)threads / 2 * kShared);
  CHECK(memory != NULL, "no memory");
  memset(memory, 0, (size_t)threads / 2 * kShared);
  CHECK(pthread_barrier_init(&begin, NULL, (unsigned)threads + 1) == 0, "barrier");
  pthread_t running[kMostThreads];
  for (long i = 0; i < threads; ++i)
    CHECK(pthread_create(&running[i], NULL, work, (void*)i) == 0, "thread %ld", i);
  pthread_barrier_wait(&begin);
  if (strcmp(argv[1], "follow") == 0) {
    wait_until_together("first");
    CHECK(cpus_allowed(0) == threads, "the first thread may run on %d CPUs", cpus_allowed(0));
    check_child("a child");
    int moved = 0;
    while (moved < threads && cpus_allowed((pid_t)numbers[moved]) == threads) ++moved;
    CHECK(moved < threads, "nobody was moved");
    __atomic_store_n(&wants_child, moved, __ATOMIC_RELAXED);
    for (int i = 0; i < 1000 && __atomic_load_n(&wants_child, __ATOMIC_RELAXED) >= 0; ++i)
      sleep_for(.02);
    CHECK(__atomic_load_n(&wants_child, __ATOMIC_RELAXED) < 0, "no child in 20 s");
    __atomic_store_n(&is_late, 1, __ATOMIC_RELAXED);
    wait_until_together("then");
  } else {
    sleep_for(kSecondsToStay);
    printf("%.0f %% of the pairs on one node\n", together());
    CHECK(narrowed() == 0, "%d threads have lost CPUs", narrowed());
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < threads; ++i) pthread_join(running[i], NULL);
  return 0;
}
