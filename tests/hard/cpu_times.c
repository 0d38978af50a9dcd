// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members ask for the processor time of their threads, as programs do that balance by it: it goes on, and by what they have computed.
//   cpu_times flat|nested clock|rusage [MEMBERS]
#define _GNU_SOURCE
#include "hard.h"

#include <sys/resource.h>

enum { kRounds = 3 };

static int by_clock;
static double alone;  ///< what a round takes
/// The kernel may count what a thread uses at its own ticks only.
static double unsure;

/// Seconds.
static double by_its_clock(void) {
  struct timespec t;
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0, "clock_gettime: errno %d", errno);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double mine(void) {
  if (by_clock) return by_its_clock();
  struct rusage used;
  CHECK(getrusage(RUSAGE_THREAD, &used) == 0, "getrusage: errno %d", errno);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/// Longer than a time slice.
static void work(void) { delay_rounds(60000000); }

static void member(int me) {
  double before = mine();
  for (int round = 0; round < kRounds; ++round) {
    work();
    const double after = mine();
    // Two threads of a core take longer than one.
    CHECK(after - before > alone / 4 - unsure && after - before < 2.2 * alone + unsure,
          "member %d: a round of %.0f ms took %.0f ms", me, 1e3 * alone, 1e3 * (after - before));
#pragma omp barrier
    // Whoever waits may poll, but not for others' rounds on this processor.
    before = mine();
    CHECK(before >= after, "member %d: its time went back by %.3f ms", me, 1e3 * (after - before));
  }
}

int main(int argc, char** argv) {
  CHECK(argc >= 3, "usage: cpu_times flat|nested clock|rusage [MEMBERS]");
  by_clock = strcmp(argv[2], "clock") == 0;
  const int members = argc > 3 ? atoi(argv[3]) : omp_get_max_threads();
  unsure = by_clock ? 0 : .012;
  const double start = mine();
  work();
  const double from = by_its_clock();
  work();
  alone = by_its_clock() - from;
  if (strcmp(argv[1], "flat") == 0) {
#pragma omp parallel num_threads(members)
    member(omp_get_thread_num());
  } else {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
      const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(members)
      member(outer * members + omp_get_thread_num());
    }
  }
  // The initial thread has computed its own rounds, and waited.
  CHECK(mine() > start + alone, "main has computed for less than twice %.0f ms", 1e3 * alone);
  return passed();
}
