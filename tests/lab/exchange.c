// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members go to what they work on by exchanging their seats, where only threads may move (BOSK_MEMORY_MOVES=threads, policy memory;
// docs/binding.md): exchange MODE NODES CPUS-PER-NODE
//   flat      a team of all CPUs, each member goes on with the block of the one a node further
//   nested    an outer member on each node goes on with the next one's; the teams that it opens come along
//   bound     as flat, but one member has bound itself before: nobody moves
//   back      as flat, and then each has its own block again
//   inside, inside_nested   as flat and nested, in one long region: the members say when it is to be decided (bosk_redecide)
// Blocks are put on the nodes of their members' seats; that they still lie there in the end is checked.
#include "numa.h"

#include <bosk/error.h>
#include <bosk/hints.h>
#include <linux/mempolicy.h>
#include <omp.h>
#include <sched.h>
#include <time.h>

enum { kMost = 256, kPages = 64, kBytes = kPages * kPage, kLeastSamples = 4000 };

static unsigned nodes, each, members;
static char* block[kMost];
static int home[kMost][kPages];  ///< of each page, when it had been touched
static unsigned works_on[kMost];
static long seen, right;
static volatile unsigned long sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned my_node(void) {
  unsigned cpu, node;
  where_am_i(&cpu, &node);
  return node;
}

/// Long enough for all to run side by side; a share is asked for, since the kernel may move who is not bound.
static void compute(unsigned member) {
  for (int i = 0; i < 20000; ++i) sink += (unsigned long)block[works_on[member]][i % kBytes];
  __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&right, (int)my_node() == home[works_on[member]][0], __ATOMIC_RELAXED);
}

/// Not by first touch: a member that happens to be elsewhere would put its block on a node that then has too many.
static void touch(void) {
  for (unsigned i = 0; i < members; ++i) {
    const unsigned long node = 1UL << i / (members / nodes);
    CHECK(syscall(SYS_set_mempolicy, (long)MPOL_BIND, &node, 8 * sizeof node) == 0, "policy");
    memset(block[i], 1, kBytes);
    CHECK(syscall(SYS_set_mempolicy, (long)MPOL_DEFAULT, NULL, 0L) == 0, "policy");
    nodes_of_pages(block[i], kPages, home[i]);
    works_on[i] = i;
  }
}

static void tell_mine(unsigned me, unsigned further) {
  CHECK(bosk_detach_all(BOSK_ME) == BOSK_OK, "detach");
  works_on[me] = (me + further) % members;
  const int error =
      bosk_attach(BOSK_ME, block[works_on[me]], kBytes, BOSK_READS | BOSK_WRITES, 100);
  CHECK(error == BOSK_OK, "bosk_attach: %d", error);
}

/// In a region of its own, so that who places the next one knows of all.
static void tell(unsigned further) {
#pragma omp parallel num_threads(members)
  tell_mine((unsigned)omp_get_thread_num(), further);
}

static void work(unsigned me, int inner) {
  if (inner) {
#pragma omp parallel num_threads(each)
    compute(me);
  } else {
    compute(me);
  }
}

static double share(void) {
  const double percent = 100.0 * (double)right / (double)seen;
  printf("%.1f %% of %ld on the node of their blocks\n", percent, seen);
  return percent;
}

static double measure(int inner) {
  seen = right = 0;
  const double end = now() + 1;
  while (now() < end || seen < kLeastSamples) {
#pragma omp parallel num_threads(members)
    work((unsigned)omp_get_thread_num(), inner);
  }
  return share();
}

/// Nobody waits for anybody, and no level-1 region opens: who knows of all is the last one that says so.
static double measure_inside(int inner, unsigned further) {
  int moves = 0;
#pragma omp parallel num_threads(members) reduction(+ : moves)
  {
    const unsigned me = (unsigned)omp_get_thread_num();
    tell_mine(me, further);
    const int answer = bosk_redecide(BOSK_WHEN_ALL);
    CHECK(answer >= 0, "bosk_redecide: %d", answer);
    moves += answer;
    const double half = now() + .5;
    while (now() < half) work(me, inner);
#pragma omp barrier
#pragma omp single
    seen = right = 0;
    const double end = now() + 1;
    while (now() < end || __atomic_load_n(&seen, __ATOMIC_RELAXED) < kLeastSamples) work(me, inner);
  }
  CHECK(moves == 1, "%d members were told that something moves", moves);
  return share();
}

static void bind_one(void) {
#pragma omp parallel num_threads(members)
  if (omp_get_thread_num() == 1) {
    unsigned cpu, node;
    where_am_i(&cpu, &node);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    CHECK(sched_setaffinity(0, sizeof only, &only) == 0, "sched_setaffinity");
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 4 && (bosk_attach), "usage: bosk run exchange MODE NODES CPUS-PER-NODE");
  const char* mode = argv[1];
  const int inside = strncmp(mode, "inside", 6) == 0;
  const int inner = strstr(mode, "nested") != NULL;
  const int bound = strcmp(mode, "bound") == 0;
  nodes = (unsigned)atoi(argv[2]);
  each = (unsigned)atoi(argv[3]);
  members = inner ? nodes : nodes * each;
  CHECK(members <= kMost, "too many CPUs");
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  for (unsigned i = 0; i < members; ++i) {
    block[i] = fresh_small_pages(kBytes);
    works_on[i] = i;
  }
  // Workers come home first.
  measure(inner);
  touch();
  // Not all: ghosts of which nothing is known yet may be run by whoever is idle, and the kernel moves who is not bound.
  const double at_home = measure(inner);
  CHECK(at_home >= 40, "not at home to begin with: %.1f %%", at_home);
  if (bound) bind_one();
  const unsigned further = inner ? 1 : each;
  if (!inside) tell(further);
  const double there = inside ? measure_inside(inner, further) : measure(inner);
  CHECK(bound ? there <= 30 : there >= 90, "%.1f %%", there);
  if (strcmp(mode, "back") == 0) {
    tell(0);
    const double back = measure(inner);
    CHECK(back >= 90, "back: %.1f %%", back);
  }
  for (unsigned i = 0; i < members; ++i) {
    int now_on[kPages];
    nodes_of_pages(block[i], kPages, now_on);
    CHECK(memcmp(now_on, home[i], sizeof now_on) == 0, "block %u has moved", i);
  }
  return passed();
}
