// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams, one for each node, whose threads have vectors of their own, exchange their large vectors halfway (Twisted-STREAM,
// 2009 §4.4): at the end everybody has his memory on his node again, whatever moved for that.
//
//   bosk_memory_moves WHAT WHEN
//     WHAT: what BOSK_MEMORY_MOVES says: threads, data, mixed; auto
//     WHEN: attached (nobody says more than what is attached), hint (bosk_mem_redecide), all (by every thread)
// Pages are where the kernel says, if it knows the nodes; threads on the nodes of their workers.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 4, EACH = 2, THREADS = NODES * EACH, PAGE = 4096 };
enum { LARGE = 128 * PAGE, SMALL = 32 * PAGE };

static _Atomic(unsigned char*) large_of[THREADS];
static unsigned char* small_of[THREADS];
static _Atomic int node_of[THREADS];
static _Atomic long turns[THREADS];
static _Atomic int stop, ask_all;
static bosk_bubble_t program, team_of[NODES];

static void* work(void* argument) {
  const int me = (int)(intptr_t)argument;
  int asked = 0;
  while (!atomic_load(&stop)) {
    atomic_store(&node_of[me], bosk_topo_node_of(bosk_here()));
    unsigned char* large = atomic_load(&large_of[me]);
    for (long i = 0; i < LARGE; i += PAGE) large[i + me] += 1;
    for (long i = 0; i < SMALL; i += PAGE) small_of[me][i] += 1;
    if (asked < atomic_load(&ask_all)) {
      ++asked;
      const int moved = bosk_mem_redecide(program, BOSK_MEM_WHEN_ALL);
      CHECK(moved == 0 || moved == 1, "redecide: %d", moved);
    }
    // Nobody yields: what is queued for a moment, a PU that is idle for a moment may take to another node.
    atomic_fetch_add(&turns[me], 1);
  }
  return NULL;
}

/// Everybody has gone over his vectors again.
static void wait_for_all(int more) {
  long until[THREADS];
  for (int i = 0; i < THREADS; ++i) until[i] = atomic_load(&turns[i]) + more;
  for (int i = 0; i < THREADS; ++i)
    while (atomic_load(&turns[i]) < until[i]) bosk_thread_yield();
}

static uint64_t bytes_on(void* area, int node) {
  uint64_t on[NODES];
  OK(bosk_mem_update(area));
  CHECK(bosk_mem_area_nodes(area, on, NODES) == NODES, "nodes of an area");
  return on[node];
}

/// Of all that threads work on, percent that lie where they are.
static int local_share(void) {
  uint64_t local = 0;
  for (int i = 0; i < THREADS; ++i) {
    const int node = atomic_load(&node_of[i]);
    local += bytes_on(atomic_load(&large_of[i]), node) + bytes_on(small_of[i], node);
  }
  return (int)(local * 100 / (THREADS * (LARGE + SMALL)));
}

static void wait_for_share(int wanted) {
  int share;
  while ((share = local_share()) < wanted) wait_for_all(2);
  printf("local: %d %%\n", share);
}

static void* allocate(int node, size_t bytes) {
  bosk_mem_attr_t attr;
  void* area;
  OK(bosk_mem_attr_init(&attr));
  attr.policy = BOSK_MEM_ON_NODE;
  attr.node = (uint32_t)node;
  OK(bosk_mem_alloc(&area, bytes, &attr));
  memset(area, 0, bytes);
  return area;
}

int main(int argc, char** argv) {
  CHECK(argc >= 3, "what, and when?");
  const char* what = argv[1];
  const int hint = strcmp(argv[2], "hint") == 0, all = strcmp(argv[2], "all") == 0;
  CHECK(bosk_topo_nodes() == NODES, "%d nodes", bosk_topo_nodes());
  OK(bosk_bubble_create(&program));
  bosk_thread_t thread[THREADS];
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  for (int i = 0; i < THREADS; ++i) {
    const int team = i / EACH;
    if (i % EACH == 0) {
      OK(bosk_bubble_create(&team_of[team]));
      OK(bosk_bubble_insert_bubble(program, team_of[team]));
    }
    atomic_store(&large_of[i], (unsigned char*)allocate(team, LARGE));
    small_of[i] = allocate(team, SMALL);
    attr.bubble = team_of[team];
    OK(bosk_thread_create(&thread[i], &attr, work, (void*)(intptr_t)i));
    OK(bosk_mem_attach_thread(large_of[i], thread[i], BOSK_MEM_READS_AND_WRITES, 1000));
    OK(bosk_mem_attach_thread(small_of[i], thread[i], BOSK_MEM_READS_AND_WRITES, 1000));
  }
  OK(bosk_bubble_wake(program, NULL));
  wait_for_all(10);
  wait_for_share(95);
  int before[THREADS];
  for (int i = 0; i < THREADS; ++i) before[i] = atomic_load(&node_of[i]);

  // Everybody gets the large vector of his like in the next team.
  unsigned char* old[THREADS];
  for (int i = 0; i < THREADS; ++i) old[i] = atomic_load(&large_of[i]);
  for (int i = 0; i < THREADS; ++i) OK(bosk_mem_detach_thread(old[i], thread[i]));
  for (int i = 0; i < THREADS; ++i) {
    unsigned char* next = old[(i + EACH) % THREADS];
    atomic_store(&large_of[i], next);
    OK(bosk_mem_attach_thread(next, thread[i], BOSK_MEM_READS_AND_WRITES, 1000));
  }
  if (all) atomic_store(&ask_all, 1);
  if (hint) CHECK(bosk_mem_redecide(program, BOSK_MEM_AT_ONCE) >= 0, "redecide");
  // Where only threads may move, the small vectors stay behind; and one thread of eight may be elsewhere without the
  // others being disturbed for it.
  wait_for_share(strcmp(what, "threads") == 0 ? 65 : 95);

  int threads_moved = 0, vectors_moved = 0;
  for (int i = 0; i < THREADS; ++i) threads_moved += atomic_load(&node_of[i]) != before[i];
  for (int i = 0; i < THREADS; ++i) vectors_moved += bytes_on(old[i], i / EACH) < LARGE / 2;
  printf("%s: %d threads and %d large vectors have moved\n", what, threads_moved, vectors_moved);
  const int threads_only = strcmp(what, "threads") == 0;
  const int data_only = strcmp(what, "data") == 0;
  CHECK(!threads_only || (threads_moved != 0 && vectors_moved == 0), "not only threads");
  CHECK(!data_only || vectors_moved != 0, "no vector has moved");
  CHECK(threads_moved + vectors_moved != 0, "nothing has moved");

  atomic_store(&stop, 1);
  for (int i = 0; i < THREADS; ++i) OK(bosk_thread_join(thread[i], NULL));
  for (int team = 0; team < NODES; ++team) OK(bosk_bubble_destroy(team_of[team]));
  OK(bosk_bubble_destroy(program));
  for (int i = 0; i < THREADS; ++i) {
    OK(bosk_free(large_of[i]));
    OK(bosk_free(small_of[i]));
  }
  return passed();
}
