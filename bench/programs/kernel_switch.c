// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernel's threads and the C library's contexts cost: the figures that bosk's own switches
// are compared with. Everything runs on one CPU.
#include "bench.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static double ticks_per_ns;  // 0 where there is no time-stamp counter

#if defined(__x86_64__)
#include <x86intrin.h>
static void measure_ticks(void) {
  const double start = now_ns();
  const unsigned long long first = __rdtsc();
  while (now_ns() - start < 20e6) {
  }
  const unsigned long long last = __rdtsc();
  ticks_per_ns = (double)(last - first) / (now_ns() - start);
}
#else
static void measure_ticks(void) {}
#endif

static void print_both(const char* name, double ns) {
  bench_print(name, ns, "ns");
  if (ticks_per_ns > 0) {
    char with_unit[64];
    snprintf(with_unit, sizeof with_unit, "%s-cycles", name);
    bench_print(with_unit, ns * ticks_per_ns, "cycles");
  }
}

static void stay_on_one_cpu(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) bench_fail("sched_getaffinity failed");
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &set)) continue;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    break;
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0) bench_fail("sched_setaffinity failed");
}

static double yield_alone(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) sched_yield();
  return now_ns() - start;
}

static void start_thread(pthread_t* thread, void* (*body)(void*), void* argument) {
  if (pthread_create(thread, NULL, body, argument) != 0) bench_fail("pthread_create failed");
}

typedef struct {
  pthread_barrier_t begin;
  long count;
  long switches;
} YieldPair;

static long voluntary_switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void* yield_loop(void* argument) {
  YieldPair* pair = argument;
  pthread_barrier_wait(&pair->begin);
  const long before = voluntary_switches();
  for (long i = 0; i < pair->count; i++) sched_yield();
  __atomic_fetch_add(&pair->switches, voluntary_switches() - before, __ATOMIC_RELAXED);
  return NULL;
}

// A yield need not switch (the scheduler may find that the caller should go on), so the kernel's
// own count of switches is returned too.
static double yield_pair(long count, long* switches) {
  YieldPair pair = {.count = count};
  pthread_t other;
  pthread_barrier_init(&pair.begin, NULL, 2);
  start_thread(&other, yield_loop, &pair);
  const double start = now_ns();
  yield_loop(&pair);
  pthread_join(other, NULL);
  *switches = pair.switches;
  return now_ns() - start;
}

typedef struct {
  int turn;
  long count;
} FutexPair;

static void futex_turns(FutexPair* pair, int me) {
  for (long i = 0; i < pair->count; i++) {
    while (__atomic_load_n(&pair->turn, __ATOMIC_ACQUIRE) != me)
      syscall(SYS_futex, &pair->turn, FUTEX_WAIT_PRIVATE, 1 - me, NULL, NULL, 0);
    __atomic_store_n(&pair->turn, 1 - me, __ATOMIC_RELEASE);
    syscall(SYS_futex, &pair->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
}

static void* futex_other(void* argument) {
  futex_turns(argument, 1);
  return NULL;
}

static double futex_run(void* unused, long count) {
  (void)unused;
  FutexPair pair = {0, count};
  pthread_t other;
  start_thread(&other, futex_other, &pair);
  const double start = now_ns();
  futex_turns(&pair, 0);
  pthread_join(other, NULL);
  return (now_ns() - start) / 2;
}

static void* nothing(void* argument) { return argument; }

static double create_join(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
    pthread_t thread;
    start_thread(&thread, nothing, NULL);
    pthread_join(thread, NULL);
  }
  return now_ns() - start;
}

static ucontext_t here, there;

static void swap_back(void) {
  for (;;) swapcontext(&there, &here);
}

static double swap_run(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) swapcontext(&here, &there);
  return (now_ns() - start) / 2;
}

int main(void) {
  static char stack[65536];
  measure_ticks();
  stay_on_one_cpu();

  const double alone = bench_measure(yield_alone, NULL);
  print_both("yield", alone);

  long count = 1000, switches = 0;
  double took = yield_pair(count, &switches);
  while (took < 4 * bench_sample_ns()) {
    count *= 2;
    took = yield_pair(count, &switches);
  }
  bench_print("switches-per-yield", (double)switches / (2.0 * (double)count), "switches");
  if (switches > count / 10) {  // what a switch adds to the yields that caused it
    const double added = (took - 2.0 * (double)count * alone) / (double)switches;
    print_both("switch", added);
    print_both("yield-and-switch", alone + added);
    print_both("round-trip", 2 * (alone + added));
  }

  print_both("futex-handover", bench_measure(futex_run, NULL));
  print_both("create-join", bench_measure(create_join, NULL));

  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = sizeof stack;
  makecontext(&there, swap_back, 0);
  print_both("swapcontext", bench_measure(swap_run, NULL));
  return 0;
}
