// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gangs of OpenMP that take turns: team_gangs HOW SIZES PIECES. A team of a thread for each of SIZES (2,3,1 and so on), each of
// which opens a team of that size that computes; together they are more than fit on the machine. HOW: `relation`, the program says that they are gangs;
// `policy`, it says nothing, and what BOSK_POLICY or BOSK_RELATION says decides.
//
// After each piece of its work a member asks bosk how many of its team run, and notes whether all that are left do. Counted is only
// while other gangs are not done either: later there is nothing to choose. As in gangs.c, pieces are a member's work, so what is counted is
// the gang's running time. Prints for check_policies.py
//   team gangs: N samples, N whole, N turns
// `turns`: how often a member came to a processor where another gang's was before it; 0 would say that nothing took turns.
#include "numa.h"

#include <bosk/hints.h>
#include <omp.h>
#include <sched.h>

enum { kMostGangs = 16, kMostPus = 256, kPiece = 20000, kPause = 2000 };

static int gangs, pieces;
static int sizes[kMostGangs];
static int left_of[kMostGangs];  ///< members that have not ended
static int gangs_left;
static int
    last_on[kMostPus];  ///< which gang a processor ran last, by the members' own word; 0: none yet
static long samples, whole, turns;

/// The lab's CPUs take turns, and one that pauses gives its turn away: so they run side by side.
static void compute(void) {
  for (volatile int i = 0; i < kPiece; ++i) {
#if defined(__x86_64__)
    if (i % kPause == 0) __builtin_ia32_pause();
#endif
  }
}

static void look(int gang) {
  const int pu = sched_getcpu();
  CHECK(pu >= 0 && pu < kMostPus, "on processor %d", pu);
  const int before = __atomic_exchange_n(&last_on[pu], gang + 1, __ATOMIC_RELAXED);
  const int left = __atomic_load_n(&left_of[gang], __ATOMIC_RELAXED);
  const int running = bosk_running();
  if (__atomic_load_n(&gangs_left, __ATOMIC_RELAXED) < 2) return;
  __atomic_fetch_add(&turns, before != 0 && before != gang + 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&whole, sizes[gang] == 1 || running >= left, __ATOMIC_RELAXED);
}

static void run_gang(int gang, int says) {
  if (says)
    CHECK(bosk_set_relation(BOSK_NEXT_TEAM, BOSK_TEAM_GANG) == 0, "bosk_set_relation failed");
#pragma omp parallel num_threads(sizes[gang])
  {
    for (int piece = 0; piece < pieces; ++piece) {
      compute();
      look(gang);
    }
    __atomic_fetch_sub(&left_of[gang], 1, __ATOMIC_RELAXED);
  }
  __atomic_fetch_sub(&gangs_left, 1, __ATOMIC_RELAXED);
}

static void read_sizes(const char* list) {
  for (const char* at = list; *at != '\0' && gangs < kMostGangs;) {
    char* end;
    sizes[gangs] = (int)strtoul(at, &end, 10);
    CHECK(end != at && sizes[gangs] != 0, "%s: not sizes of gangs", list);
    left_of[gangs] = sizes[gangs];
    ++gangs;
    at = *end == ',' ? end + 1 : end;
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 4 && atoi(argv[3]) > 0, "usage: team_gangs policy|relation SIZES PIECES");
  const int says = strcmp(argv[1], "relation") == 0;
  read_sizes(argv[2]);
  pieces = atoi(argv[3]);
  gangs_left = gangs;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(gangs)
  run_gang(omp_get_thread_num(), says);
  CHECK(samples > 0, "no gang ever waited");
  printf("team gangs: %ld samples, %ld whole, %ld turns\n", samples, whole, turns);
  return passed();
}
