// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that wait for each other without the runtime: regions in which a token goes through the team.
//   waiting yield|yield-ring|flag-ring|sleep-ring|spin-lock|test-lock T
//   waiting flag-stages|flag-stages-short OUTER INNER
// sleep-ring: yield-ring by usleep(1).
// yield: from the last member to the first, by sched_yield(); one unit is a region. yield-ring: ten times round, one region.
// flag-ring: members read a flag in a loop, 20 us of work with the token; one unit is one time round
// of fifty.
// spin-lock, test-lock: by pthread_spin_lock(), or a loop of omp_test_lock(): some .3 us with the lock, and as much without; one unit
// is one time through, by one member.
// flag-stages: each of OUTER members opens inner teams of INNER, whose members hand planes to each other by one-slot flags, as
// pipelined solvers do: 32 planes, 20 us of work for each member and plane; one unit is such a region in all outer members. With INNER
// and STAGES given a member has STAGES / INNER of that. flag-stages-short: 12 planes of 2 us.
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bench.h"

static int threads, threads_inner, stages;
static atomic_long token;

static void yield_until(long value) {
  while (atomic_load_explicit(&token, memory_order_acquire) != value) sched_yield();
}
static void spin_until(long value) {
  while (atomic_load_explicit(&token, memory_order_acquire) != value) continue;
}
static void sleep_until(long value) {
  while (atomic_load_explicit(&token, memory_order_acquire) != value) usleep(1);
}
static void hand_on(long value) { atomic_store_explicit(&token, value, memory_order_release); }

static void work_us(double us) {
  const double end = now_ns() + us * 1e3;
  while (now_ns() < end) continue;
}

static double yield(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) {
    token = threads - 1;
#pragma omp parallel num_threads(threads)
    {
      const int me = omp_get_thread_num();
      yield_until(me);
      hand_on(me - 1);
    }
  }
  return now_ns() - start;
}

static void ring(long rounds, void (*wait_for)(long), double us) {
  token = 0;
#pragma omp parallel num_threads(threads)
  for (long round = 0; round < rounds; round++) {
    const long mine = round * threads + omp_get_thread_num();
    wait_for(mine);
    if (us > 0) work_us(us);
    hand_on(mine + 1);
  }
}

static double yield_ring(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) ring(10, yield_until, 0);
  return now_ns() - start;
}

static double sleep_ring(void* unused, long count) {
  (void)unused;
  const double start = now_ns();
  for (long i = 0; i < count; i++) ring(10, sleep_until, 0);
  return now_ns() - start;
}

static double flag_ring(void* unused, long count) {
  (void)unused;
  enum { kRounds = 50 };  // in one region: what is once per region is another row's
  const double start = now_ns();
  ring(count * kRounds, spin_until, 20);
  return (now_ns() - start) / kRounds;
}

static pthread_spinlock_t spin_lock;
static omp_lock_t test_lock;
static volatile long locked_sum;

static void take_spin(void) { pthread_spin_lock(&spin_lock); }
static void give_spin(void) { pthread_spin_unlock(&spin_lock); }
static void take_test(void) {
  while (!omp_test_lock(&test_lock)) continue;
}
static void give_test(void) { omp_unset_lock(&test_lock); }

static void short_work(void) {
  for (int i = 0; i < 200; i++) locked_sum = locked_sum + i;
}

static double by_lock(long count, void (*take)(void), void (*give)(void)) {
  enum { kRounds = 1000 };
  long entered = 0;
  const double start = now_ns();
  for (long region = 0; region < count; region++)
#pragma omp parallel num_threads(threads)
    for (int round = 0; round < kRounds; round++) {
      take();
      entered++;
      short_work();
      give();
      for (volatile int i = 0; i < 200; i++) continue;
    }
  const double passed = now_ns() - start;
  if (entered != count * kRounds * threads) bench_fail("waiting: two at a time with the lock");
  return passed / ((double)kRounds * threads);
}

static double with_spin_lock(void* unused, long count) {
  (void)unused;
  pthread_spin_init(&spin_lock, PTHREAD_PROCESS_PRIVATE);
  return by_lock(count, take_spin, give_spin);
}

static double with_test_lock(void* unused, long count) {
  (void)unused;
  omp_init_lock(&test_lock);
  const double passed = by_lock(count, take_test, give_test);
  omp_destroy_lock(&test_lock);
  return passed;
}

enum { kMostStages = 64 };
struct Pipeline {
  _Alignas(128) atomic_int full[kMostStages][32];  // a line of its own for each
};

static void wait_while(atomic_int* flag, int value) {
  while (atomic_load_explicit(flag, memory_order_acquire) == value) continue;
}

// One inner region: each member works on each plane after its left neighbour has.
static void pipeline(struct Pipeline* line, int planes, double us) {
  const double mine = us * stages / threads_inner;
#pragma omp parallel num_threads(threads_inner)
  {
    const int me = omp_get_thread_num();
    for (int plane = 0; plane < planes; plane++) {
      if (me > 0) {
        wait_while(line->full[me - 1], 0);
        atomic_store_explicit(line->full[me - 1], 0, memory_order_release);
      }
      work_us(mine);
      if (me + 1 < threads_inner) {
        wait_while(line->full[me], 1);
        atomic_store_explicit(line->full[me], 1, memory_order_release);
      }
    }
  }
}

static double staged(long count, int planes, double us) {
  static struct Pipeline lines[kMostStages];
  const double start = now_ns();
#pragma omp parallel num_threads(threads)
  for (long i = 0; i < count; i++) pipeline(&lines[omp_get_thread_num()], planes, us);
  return now_ns() - start;
}

static double flag_stages(void* unused, long count) {
  (void)unused;
  return staged(count, 32, 20);
}

static double flag_stages_short(void* unused, long count) {
  (void)unused;
  return staged(count, 12, 2);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    BenchRun run;
  } cases[] = {{"yield", yield},
               {"yield-ring", yield_ring},
               {"flag-ring", flag_ring},
               {"sleep-ring", sleep_ring},
               {"spin-lock", with_spin_lock},
               {"test-lock", with_test_lock},
               {"flag-stages", flag_stages},
               {"flag-stages-short", flag_stages_short}};
  if (argc < 3) bench_fail("usage: waiting CASE T [INNER [STAGES]]");
  threads = bench_int(argc, argv, 2);
  threads_inner = argc > 3 ? bench_int(argc, argv, 3) : 1;
  stages = argc > 4 ? bench_int(argc, argv, 4) : threads_inner;
  if (threads > kMostStages || threads_inner > kMostStages)
    bench_fail("waiting: 64 members at most");
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    if (strcmp(argv[1], cases[c].name) != 0) continue;
    bench_print(argv[1], bench_measure(cases[c].run, NULL) / 1e3, "us");
    return 0;
  }
  bench_fail("waiting: unknown case");
}
