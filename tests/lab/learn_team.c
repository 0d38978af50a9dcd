// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// learn_team long|short|nested: a team of OpenMP, bound by nobody; each member writes to what it shares with the one half of all further on, later with its
// neighbour. All pairs but one come to one node each, in both phases, and no thread has lost a CPU.
//   long     a member for each CPU, in one region
//   short    the same, in many
//   nested   a member for two CPUs, in one region, who opens regions of two for its work
#include "numa.h"

#include <omp.h>
#include <time.h>

enum { kMostSeconds = 60, kMostMembers = 64, kShared = 16 * kPage };

static int members, inner;
static char* memory;  // of each pair kShared
static int is_late;   // phase
static int node_of[kMostMembers][2];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int pair_of(int me, int late) { return late ? me / 2 : me % (members / 2); }

static void write_part(int me, int part) {
  volatile char* at =
      memory + (size_t)pair_of(me, __atomic_load_n(&is_late, __ATOMIC_RELAXED)) * kShared;
  for (size_t i = (size_t)part * 64; i < kShared; i += 64 * (size_t)inner) {
    ++at[i + (size_t)me % 64];
#if defined(__x86_64__)
    if (i % kPage < 128) __builtin_ia32_pause();  // the lab's CPUs take turns
#endif
  }
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  __atomic_store_n(&node_of[me][part], (int)node, __ATOMIC_RELAXED);
}

static void work(int me) {
  if (inner == 1) {
    write_part(me, 0);
    return;
  }
#pragma omp parallel num_threads(inner)
  write_part(me, omp_get_thread_num());
}

static int is_on(int member, int node) {
  for (int part = 0; part < inner; ++part)
    if (__atomic_load_n(&node_of[member][part], __ATOMIC_RELAXED) != node) return 0;
  return 1;
}

/// Of 100 pairs so many are on one node, with all who help them.
static double together(void) {
  int found = 0;
  for (int a = 0; a < members; ++a)
    for (int b = 0; b < a; ++b) {
      const int node = __atomic_load_n(&node_of[a][0], __ATOMIC_RELAXED);
      found += pair_of(a, is_late) == pair_of(b, is_late) && is_on(a, node) && is_on(b, node);
    }
  return 200.0 * found / members;
}

/// By the first member, between its turns. True: that was all.
static int look(double* began, double* looked) {
  const double time = now();
  if (time - *looked < .25) return 0;
  *looked = time;
  const double wanted = 100 - 200.0 / members;
  const int is_done = together() >= wanted;
  if (!is_done && time - *began < kMostSeconds) return 0;
  printf("%s: %.0f %% of the pairs on one node after %.2f s\n", is_late ? "then" : "first",
         together(), time - *began);
  for (int i = 0; i < members && !is_done; ++i)
    printf("member %d of pair %d: node %d\n", i, pair_of(i, is_late), node_of[i][0]);
  fflush(stdout);
  CHECK(is_done, "%.1f %% of the pairs are on one node", together());
  *began = time;
  return __atomic_fetch_add(&is_late, 1, __ATOMIC_RELAXED) == 1;
}

/// A moment later: who goes home is narrow meanwhile.
static void check_all_cpus(void) {
  int cpus = 0;
  for (int i = 0; i < 100 && cpus != omp_get_num_procs(); ++i) {
    cpu_set_t mask;
    CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0, "mask: %s", strerror(errno));
    cpus = CPU_COUNT(&mask);
  }
  CHECK(cpus == omp_get_num_procs(), "a member may run on %d CPUs", cpus);
}

int main(int argc, char** argv) {
  const char* mode = argc == 2 ? argv[1] : "";
  const int is_long = strcmp(mode, "long") == 0;
  const int is_nested = strcmp(mode, "nested") == 0;
  CHECK(is_long || is_nested || strcmp(mode, "short") == 0, "usage: learn_team long|short|nested");
  inner = is_nested ? 2 : 1;
  members = omp_get_num_procs() / inner;
  CHECK(members >= 4 && members <= kMostMembers && members % 2 == 0, "%d members", members);
  CHECK(omp_get_num_procs() == sysconf(_SC_NPROCESSORS_ONLN), "%d CPUs", omp_get_num_procs());
  memory = aligned_alloc(kPage, (size_t)members / 2 * kShared);
  CHECK(memory != NULL, "no memory");
  memset(memory, 0, (size_t)members / 2 * kShared);
  omp_set_max_active_levels(2);
  double began = now();
  double looked = began;
  int is_over = 0;
  while (!is_over) {
#pragma omp parallel num_threads(members)
    {
      const int me = omp_get_thread_num();
      const int turns = is_long || is_nested ? 1 << 30 : 20;
      for (int i = 0; i < turns && !__atomic_load_n(&is_over, __ATOMIC_RELAXED); ++i) {
        work(me);
        if (me == 0 && look(&began, &looked)) __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
      }
    }
  }
#pragma omp parallel num_threads(members)
  check_all_cpus();
  return 0;
}
