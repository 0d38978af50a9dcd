// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A member of one node opens teams whose members work on memory there; the other node has nothing to do, and takes them whole again and
// again: then they are at home there, and their memory has come along.
//   hints_resettle MOVES: what BOSK_MEMORY_MOVES says. threads: memory stays where it is.
#include "check.h"

#include <bosk/hints.h>
#include <bosk/memory.h>
#include <bosk/topology.h>
#include <omp.h>
#include <sys/wait.h>

enum {
  NODES = 2,
  MEMBERS = 3,
  PAGE = 4096,
  BYTES = 64 * PAGE,
  AFTERWARDS = 200,
  ROUNDS = 600,
  NOT_YET = 3
};

static unsigned char* vector_of[MEMBERS];
static int node_of[MEMBERS];
static volatile unsigned long sink[MEMBERS][16];

/// Some 200 us.
static void work(int me) {
  node_of[me] = bosk_topo_node_of(bosk_here());
  for (long i = 0; i < 40; ++i)
    for (long at = 0; at < BYTES; at += 64) vector_of[me][at] += 1;
  sink[me][0] += vector_of[me][0];
}

static void one_round(int attach) {
#pragma omp parallel num_threads(NODES)
  if (omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(MEMBERS)
    {
      const int me = omp_get_thread_num();
      if (attach) {
        const int error =
            bosk_attach(BOSK_ME, vector_of[me], BYTES, BOSK_READS_AND_WRITES, 1000000);
        CHECK(error == 0, "attach: %s", bosk_strerror(error));
      }
      work(me);
    }
  }
}

static int is_on(int member, int node) {
  uint64_t on[NODES];
  CHECK(bosk_mem_update(vector_of[member]) == 0, "update");
  CHECK(bosk_mem_area_nodes(vector_of[member], on, NODES) == NODES, "nodes of an area");
  return on[node] == BYTES;
}

static int have_come(void) {
  for (int i = 1; i < MEMBERS; ++i)
    if (!is_on(i, 1)) return 0;
  return 1;
}

static void make_vectors(void) {
  for (int i = 0; i < MEMBERS; ++i) {
    bosk_mem_attr_t attr;
    void* area;
    CHECK(bosk_mem_attr_init(&attr) == 0, "attributes");
    attr.policy = BOSK_MEM_ON_NODE;
    attr.node = 0;
    CHECK(bosk_mem_alloc(&area, BYTES, &attr) == 0, "alloc");
    memset(area, 0, BYTES);
    vector_of[i] = area;
  }
}

/// In a process of its own. NOT_YET: nothing has come, and it takes longer and longer until it is tried again.
static int run(int stays) {
  omp_set_max_active_levels(2);
  CHECK(bosk_topo_nodes() == NODES, "%d nodes", bosk_topo_nodes());
  make_vectors();
  one_round(1);
  int rounds = 0;
  for (; rounds < ROUNDS && !have_come(); ++rounds) one_round(0);
  CHECK(is_on(0, 0), "the opener's memory has left it");
  CHECK(!stays || !have_come(), "memory has moved");
  if (stays) return 0;
  if (!have_come()) return NOT_YET;
  int there = 0;
  for (int i = 0; i < AFTERWARDS; ++i) {
    one_round(0);
    for (int member = 1; member < MEMBERS; ++member) there += node_of[member] == 1;
  }
  printf("%d rounds; afterwards %d of %d members there\n", rounds, there,
         AFTERWARDS * (MEMBERS - 1));
  fflush(stdout);
  CHECK(have_come(), "memory has gone back");
  return 0;
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "what moves?");
  const int stays = strcmp(argv[1], "threads") == 0;
  // On a machine that others use the idle node's threads may not run when they could come: the watchdog ends it.
  int status;
  do {
    const pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) _exit(run(stays));
    CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    CHECK(WIFEXITED(status), "status %#x", status);
  } while (WEXITSTATUS(status) == NOT_YET);
  CHECK(WEXITSTATUS(status) == 0, "status %d", WEXITSTATUS(status));
  return passed();
}
