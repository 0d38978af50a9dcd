// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who helps where teams differ (2007, section 4; 2005, section 3.3.3): each member of the outer team opens one region a step, the
// largest of them with 25 times as much to do as the smallest, in order, so that nodes differ as much. Counted, not timed, by what bosk
// says of where a thread is: also on an invented machine (BOSK_SYNTHETIC).
//
//   whole_teams OUTER INNER STEPS
//     largest-node   % of the mean   work that a node did, the largest
//     whole-teams    %               of the members that began on another node than their opener those whose whole team was there
//     whole-work     %               of the work that members did on another node than their opener's, what was done while all others of the
//                                    team that had something to do were there, too
#include <math.h>
#include <omp.h>

#include <bosk/topology.h>

#include "bench.h"
#pragma weak bosk_here
#pragma weak bosk_topo_node_of

enum { kMost = 256, kMostInner = 64, kMostNodes = 64, kWarm = 10, kUnit = 1000000 };

static int outer, inner;
static int units_of[kMost];
static long units_on[kMostNodes];
static long away, whole;
static long work_away, work_whole;

static int my_node(void) {
  const int node = bosk_topo_node_of(bosk_here());
  if (node < 0 || node >= kMostNodes) bench_fail("whole_teams: a thread is on no node");
  return node;
}

static void unit(void) {
  for (int i = 0; i < kUnit; i++) BENCH_KEEP();
}

enum { kNotBegun = -2, kEnded = -1 };

/// A unit that member `me` has done: at[i] says where member i was when it was last seen.
static void count_unit(int at[], int me, int opener_node) {
  const int node = my_node();
  __atomic_fetch_add(&units_on[node], 1, __ATOMIC_RELAXED);
  if (me == 0) return;
  __atomic_store_n(&at[me], node, __ATOMIC_RELAXED);
  if (node == opener_node) return;
  int together = 1;
  for (int i = 1; i < inner; i++) {
    const int other = __atomic_load_n(&at[i], __ATOMIC_RELAXED);
    together &= other < 0 || other == node;
  }
  __atomic_fetch_add(&work_away, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&work_whole, together, __ATOMIC_RELAXED);
}

/// One zone's region. Its opener is where it is: the others are whole if they are all together.
static void zone(int z, int counts) {
  int on[kMostInner];
  int at[kMostInner];
  for (int i = 0; i < inner; i++) at[i] = kNotBegun;
  const int opener_node = my_node();
#pragma omp parallel num_threads(inner)
  {
    const int me = omp_get_thread_num();
    on[me] = my_node();
    __atomic_store_n(&at[me], on[me], __ATOMIC_RELAXED);
    for (int i = me; i < units_of[z]; i += inner) {
      unit();
      if (counts) count_unit(at, me, opener_node);
    }
    __atomic_store_n(&at[me], kEnded, __ATOMIC_RELAXED);
  }
  if (!counts) return;
  int others = 0, together = 0;
  for (int i = 1; i < inner; i++) {
    others += on[i] != on[0];
    together += on[i] == on[1];
  }
  __atomic_fetch_add(&away, others, __ATOMIC_RELAXED);
  if (others == inner - 1 && together == others)
    __atomic_fetch_add(&whole, others, __ATOMIC_RELAXED);
}

int main(int argc, char** argv) {
  outer = bench_int(argc, argv, 1);
  inner = bench_int(argc, argv, 2);
  const int steps = bench_int(argc, argv, 3);
  if (outer < 2 || outer > kMost || inner < 2 || inner > kMostInner)
    bench_fail("whole_teams: 2 to 256 outer threads, 2 to 64 inner ones");
  if (!bosk_here || !bosk_topo_node_of) bench_fail("whole_teams: only bosk says where threads are");
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  for (int z = 0; z < outer; z++)
    units_of[z] = (int)(inner * pow(25, (double)z / (outer - 1)) + .5);
  for (int step = 0; step < steps + kWarm; step++) {
#pragma omp parallel num_threads(outer)
    zone(omp_get_thread_num(), step >= kWarm);
  }
  long all = 0, largest = 0;
  int nodes = 0;
  for (int n = 0; n < kMostNodes; n++) {
    all += units_on[n];
    if (units_on[n] > largest) largest = units_on[n];
    if (units_on[n] != 0) nodes = n + 1;
  }
  bench_print("largest-node", 100. * (double)largest * nodes / (double)all, "%");
  bench_print("whole-teams", away == 0 ? 100 : 100. * (double)whole / (double)away, "%");
  bench_print("whole-work", work_away == 0 ? 100 : 100. * (double)work_whole / (double)work_away,
              "%");
  return 0;
}
