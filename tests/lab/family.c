// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far from their parents do the members of recursive regions run (Thibault 2005, figure 5: Fibonacci by
// threads, with and without bubbles)? family ROUNDS LEAST MOST: of all members that are not their region's opener,
// between LEAST and MOST per cent run on another node than their opener opened it.
#include "numa.h"

#include <omp.h>

static long members;
static long far;
static volatile unsigned long sink;

static unsigned my_node(void) {
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  return node;
}

static long fibonacci(int n, int depth) {
  if (n < 2 || depth == 0) {
    // The leaves take long enough for others to come and help.
    for (int i = 0; i < 2000; ++i) sink += (unsigned long)i;
    long a = 0;
    long b = 1;
    for (int i = 0; i < n; ++i) {
      const long next = a + b;
      a = b;
      b = next;
    }
    return a;
  }
  long part[2] = {0, 0};
  const unsigned parent = my_node();
#pragma omp parallel num_threads(2)
  {
    const int me = omp_get_thread_num();
    CHECK(omp_get_num_threads() == 2, "%d members", omp_get_num_threads());
    if (me != 0) {
      __atomic_fetch_add(&members, 1, __ATOMIC_RELAXED);
      __atomic_fetch_add(&far, my_node() != parent, __ATOMIC_RELAXED);
    }
    part[me] = fibonacci(n - 1 - me, depth - 1);
  }
  return part[0] + part[1];
}

int main(int argc, char** argv) {
  CHECK(argc == 4, "usage: family ROUNDS LEAST MOST");
  enum { kNumber = 18, kDepth = 8, kResult = 2584 };
  setvbuf(stdout, NULL, _IOLBF, 0);
  omp_set_dynamic(0);
  omp_set_max_active_levels(kDepth + 2);
  // All workers, once, as a program has them that does other things, too.
#pragma omp parallel
  sink++;
  for (int round = 0; round < atoi(argv[1]); ++round) {
    if (round == 1) members = far = 0;  // the first one makes threads
    const long found = fibonacci(kNumber, kDepth);
    CHECK(found == kResult, "%ld", found);
  }
  CHECK(members > 0, "no members");
  const double share = 100.0 * (double)far / (double)members;
  printf("far: %.1f %% of %ld\n", share, members);
  CHECK(share >= atof(argv[2]) && share <= atof(argv[3]), "%.1f %% are far from their parents",
        share);
  return passed();
}
