// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that wait for each other without the runtime: regions in which a token goes through the team.
//   waiting yield|yield-ring|flag-ring|sleep-ring T
// sleep-ring: yield-ring by usleep(1).
// yield: from the last member to the first, by sched_yield(); one unit is a region. yield-ring: ten times round, one region.
// flag-ring: members read a flag in a loop, 20 us of work with the token; one unit is one time round
// of fifty.
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bench.h"

static int threads;
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

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    BenchRun run;
  } cases[] = {{"yield", yield},
               {"yield-ring", yield_ring},
               {"flag-ring", flag_ring},
               {"sleep-ring", sleep_ring}};
  if (argc < 3) bench_fail("usage: waiting yield|yield-ring|flag-ring|sleep-ring T");
  threads = bench_int(argc, argv, 2);
  omp_set_dynamic(0);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    if (strcmp(argv[1], cases[c].name) != 0) continue;
    bench_print(argv[1], bench_measure(cases[c].run, NULL) / 1e3, "us");
    return 0;
  }
  bench_fail("waiting: unknown case");
}
