// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads follow their memory while they run: BOSK_POLICY=memory on a machine of four nodes, real workers.
#include "bosk_check.h"

#include <bosk/memory.h>
#include <bosk/topology.h>
#include <stdatomic.h>

enum { NODES = 4, THREADS = 4, BYTES = 1 << 20, PLACED = 10 };

static _Atomic int node_of[THREADS];
static _Atomic int stop;
static _Atomic long turns;

static void* work(void* argument) {
  const int me = (int)(intptr_t)argument;
  while (!atomic_load(&stop)) {
    atomic_store(&node_of[me], bosk_topo_node_of(bosk_here()));
    atomic_fetch_add(&turns, 1);
    bosk_thread_yield();
  }
  return NULL;
}

static void wait_for_turns(long more) {
  const long until = atomic_load(&turns) + more;
  while (atomic_load(&turns) < until) bosk_thread_yield();
}

int main(void) {
  CHECK(bosk_topo_nodes() == NODES, "%d nodes", bosk_topo_nodes());
  bosk_bubble_t team;
  FAILS(bosk_mem_redecide(NULL, BOSK_MEM_AT_ONCE), BOSK_ESTALE);
  OK(bosk_bubble_create(&team));
  FAILS(bosk_mem_redecide(team, 7), BOSK_EINVAL);
  CHECK(bosk_mem_redecide(team, BOSK_MEM_AT_ONCE) == 0, "it is not open");

  void* area[NODES];
  for (int node = 0; node < NODES; ++node) {
    bosk_mem_attr_t attr;
    OK(bosk_mem_attr_init(&attr));
    attr.policy = BOSK_MEM_ON_NODE;
    attr.node = node;
    OK(bosk_mem_alloc(&area[node], BYTES, &attr));
  }
  bosk_thread_t thread[THREADS];
  bosk_thread_attr_t attr;
  OK(bosk_thread_attr_init(&attr));
  attr.bubble = team;
  for (int i = 0; i < THREADS; ++i)
    OK(bosk_thread_create(&thread[i], &attr, work, (void*)(intptr_t)i));
  OK(bosk_mem_attach_bubble(area[0], team, BOSK_MEM_READS_AND_WRITES, 10));
  uint64_t bytes[NODES];
  CHECK(bosk_mem_bubble_footprint(team, bytes, NODES) == NODES && bytes[0] >= BYTES, "%lu bytes",
        (unsigned long)bytes[0]);
  OK(bosk_bubble_wake(team, NULL));
  wait_for_turns(100);

  // While the last thread of a bubble that is being closed waits for its tick, many rounds may go by.
  int placed = 0;
  for (int round = 0; placed < PLACED; ++round) {
    const int from = round % NODES;
    const int to = (round + 1) % NODES;
    OK(bosk_mem_attach_bubble(area[to], team, BOSK_MEM_READS_AND_WRITES, 10));
    OK(bosk_mem_detach_bubble(area[from], team));
    if (round % 2 == 0) {
      const int closed = bosk_mem_redecide(team, BOSK_MEM_AT_ONCE);
      CHECK(closed == 0 || closed == 1, "%d", closed);
      placed += closed;
    } else {
      for (int i = 0; i < THREADS; ++i) {
        const int closed = bosk_mem_redecide(team, BOSK_MEM_WHEN_ALL);
        CHECK(closed == 0 || (closed == 1 && i == THREADS - 1), "%d by call %d", closed, i);
        placed += closed;
      }
    }
    wait_for_turns(20);
  }

  // In the end somebody runs where the memory is: wherever it is.
  for (int node = NODES; node-- > 0;) {
    OK(bosk_mem_detach_all_bubble(team));
    OK(bosk_mem_attach_bubble(area[node], team, BOSK_MEM_READS, 10));
    for (int there = 0; there == 0;) {
      CHECK(bosk_mem_redecide(team, BOSK_MEM_AT_ONCE) >= 0, "redecide");
      wait_for_turns(20);
      for (int i = 0; i < THREADS; ++i) there += atomic_load(&node_of[i]) == node;
    }
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < THREADS; ++i) OK(bosk_thread_join(thread[i], NULL));
  OK(bosk_bubble_destroy(team));
  FAILS(bosk_mem_redecide(team, BOSK_MEM_AT_ONCE), BOSK_ESTALE);
  for (int node = 0; node < NODES; ++node) bosk_free(area[node]);
  return passed();
}
