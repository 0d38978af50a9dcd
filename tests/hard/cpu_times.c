// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members ask for the processor time of their threads, as programs do that balance by it: it goes on, and by what they have computed:
// together no more than the process has used, and nobody much less than the others. (How long a round takes is the machine's.)
//   cpu_times flat|nested clock|rusage [MEMBERS]
#define _GNU_SOURCE
#include "hard.h"

#include <sys/resource.h>

enum { kRounds = 3 };

static int by_clock;
/// The kernel may count what a thread uses at its own ticks only.
static double unsure;
static double* took;  ///< by each member's each round, of which there are kRounds

/// Seconds.
static double by(clockid_t clock) {
  struct timespec t;
  CHECK(clock_gettime(clock, &t) == 0, "clock_gettime: errno %d", errno);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double mine(void) {
  if (by_clock) return by(CLOCK_THREAD_CPUTIME_ID);
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
    took[me * kRounds + round] = after - before;
#pragma omp barrier
    // Whoever waits may poll, but not for others' rounds on this processor.
    before = mine();
    CHECK(before >= after, "member %d: its time went back by %.3f ms", me, 1e3 * (after - before));
  }
}

static void judge(int rounds, double used) {
  double sum = 0;
  double least = took[0];
  for (int i = 0; i < rounds; ++i) {
    sum += took[i];
    if (took[i] < least) least = took[i];
  }
  CHECK(sum <= 1.01 * used + rounds * unsure, "%d rounds took %.0f ms, the whole process %.0f ms",
        rounds, 1e3 * sum, 1e3 * used);
  // Two threads of a core take longer than one, and some machines are faster at times.
  CHECK(least >= sum / rounds / 5 - unsure, "one round took %.1f ms, %d of them %.0f ms",
        1e3 * least, rounds, 1e3 * sum);
}

int main(int argc, char** argv) {
  CHECK(argc >= 3, "usage: cpu_times flat|nested clock|rusage [MEMBERS]");
  by_clock = strcmp(argv[2], "clock") == 0;
  const int members = argc > 3 ? atoi(argv[3]) : omp_get_max_threads();
  const int outer_members = strcmp(argv[1], "nested") == 0 ? 2 : 1;
  // What the kernel has not counted at its last tick is not lost.
  unsure = by_clock ? 0 : .012;
  took = calloc((size_t)(outer_members * members * kRounds), sizeof *took);
  CHECK(took != NULL, "out of memory");
  const double used_before = by(CLOCK_PROCESS_CPUTIME_ID);
  const double start = mine();
  if (outer_members == 1) {
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
  const double mains = mine() - start;
  judge(outer_members * members * kRounds, by(CLOCK_PROCESS_CPUTIME_ID) - used_before);
  // The initial thread has computed its own rounds, and waited.
  double own = 0;
  for (int i = 0; i < kRounds; ++i) own += took[i];
  CHECK(mains >= own - unsure, "main has computed for %.0f ms, its rounds took %.0f", 1e3 * mains,
        1e3 * own);
  return passed();
}
