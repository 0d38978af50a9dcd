// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members of OpenMP teams exchange their vectors halfway (Twisted-STREAM, 2009 §4.4): under BOSK_POLICY=memory these come to where
// the members are, when the next region opens.
//
//   hints_memory_moves flat|nested|inside WHAT [real]
//     inside: a flat team, and members say in the region that it is to be decided now (bosk_redecide): memory has come when they go on
//     WHAT: what BOSK_MEMORY_MOVES says: auto, data, next-touch, mixed
//     real: nodes are the kernel's: members are where getcpu() says, pages where move_pages() does
#include "check.h"

#include <bosk/hints.h>
#include <bosk/memory.h>
#include <bosk/topology.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 4, EACH = 2, THREADS = NODES * EACH, PAGE = 4096, BYTES = 128 * PAGE };

static unsigned char* vector_of[THREADS];
static int node_of[THREADS];
static int real;

static int node_here(void) {
  if (!real) return bosk_topo_node_of(bosk_here());
  unsigned cpu, node;
  CHECK(syscall(SYS_getcpu, &cpu, &node, NULL) == 0, "getcpu");
  return (int)node;
}

static void touch(int me) {
  node_of[me] = node_here();
  for (long i = 0; i < BYTES; i += PAGE) vector_of[me][i] += 1;
}

static void say(int me) {
  const int error = bosk_attach(BOSK_ME, vector_of[me], BYTES, BOSK_READS_AND_WRITES, 100000);
  CHECK(error == 0, "attach: %s", bosk_strerror(error));
}
static int answers;
static void decide_now(int me) {
  say(me);
  const int moves = bosk_redecide(BOSK_WHEN_ALL);
  CHECK(moves >= 0, "bosk_redecide: %s", bosk_strerror(moves));
#pragma omp atomic
  answers += moves;
#pragma omp barrier
  touch(me);
}
static void take_back(int me) {
  const int error = bosk_detach(BOSK_ME, vector_of[me]);
  CHECK(error == 0, "detach: %s", bosk_strerror(error));
}

/// Calls f for every member of a flat team, or of a team of two for each node, inside of regions.
static void each(int nested, void (*f)(int me)) {
  if (!nested) {
#pragma omp parallel num_threads(THREADS)
    f(omp_get_thread_num());
    return;
  }
#pragma omp parallel num_threads(NODES)
  {
    const int team = omp_get_thread_num();
#pragma omp parallel num_threads(EACH)
    f(team * EACH + omp_get_thread_num());
  }
}

static int local_share(void) {
  uint64_t local = 0;
  for (int i = 0; i < THREADS; ++i) {
    uint64_t on[NODES];
    CHECK(bosk_mem_update(vector_of[i]) == 0, "update");
    CHECK(bosk_mem_area_nodes(vector_of[i], on, NODES) == NODES, "nodes of an area");
    local += on[node_of[i]];
  }
  return (int)(local * 100 / ((uint64_t)THREADS * BYTES));
}

/// A phase: what is attached is known when it begins; some regions later it is near, unless a member runs elsewhere for once.
static void phase(int nested, const char* name) {
  each(nested, say);
  int share;
  do {
    each(nested, touch);
    share = local_share();
  } while (share < 95);
  printf("%s: %d %% local\n", name, share);
}

static void phase_inside(int expected) {
  answers = 0;
  each(0, decide_now);
  CHECK(answers == expected, "%d members were told that something moves, not %d", answers,
        expected);
  const int share = local_share();
  CHECK(share >= 95, "%d %% local", share);
}

int main(int argc, char** argv) {
  CHECK(argc >= 3, "which team, and what?");
  const int nested = strcmp(argv[1], "nested") == 0;
  const int inside = strcmp(argv[1], "inside") == 0;
  real = argc > 3;
  omp_set_max_active_levels(2);
  CHECK(bosk_topo_nodes() == NODES, "%d nodes", bosk_topo_nodes());
  for (int i = 0; i < THREADS; ++i) {
    bosk_mem_attr_t attr;
    void* area;
    CHECK(bosk_mem_attr_init(&attr) == 0, "attributes");
    attr.policy = BOSK_MEM_ON_NODE;
    attr.node = (uint32_t)(i / EACH);
    CHECK(bosk_mem_alloc(&area, BYTES, &attr) == 0, "alloc");
    memset(area, 0, BYTES);
    vector_of[i] = area;
  }
  if (inside)
    phase_inside(0);
  else
    phase(nested, "first");
  each(nested, take_back);
  unsigned char* old[THREADS];
  memcpy(old, vector_of, sizeof old);
  for (int i = 0; i < THREADS; ++i) vector_of[i] = old[(i + EACH) % THREADS];
  if (inside)
    phase_inside(1);
  else
    phase(nested, "twisted");
  for (int i = 0; i < THREADS; ++i) {
    uint64_t sum = 0;
    for (long at = 0; at < BYTES; at += PAGE) sum += vector_of[i][at];
    CHECK(sum != 0 && sum % (BYTES / PAGE) == 0, "bytes were lost");
  }
  each(nested, take_back);
  for (int i = 0; i < THREADS; ++i) CHECK(bosk_free(vector_of[i]) == 0, "free");
  return passed();
}
