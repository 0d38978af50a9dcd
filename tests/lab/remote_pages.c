// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages that go to other nodes behind bosk's back, as the kernel's balancing may do, come back to whoever works on them: somebody has
// noticed (BOSK_MEMORY_WATCH). remote_pages NODES CPUS ROUNDS
//   A bubble for each node with a thread for each CPU, and all CPUs are busy, so that no idle one asks. The threads' memory is attached
//   before anybody has touched it, and is moved to the next node by move_pages(2) in each round.
#include "../programs/bosk_check.h"
#include "moved_pages.h"

#include <bosk/memory.h>
#include <bosk/topology.h>

static int rounds;

/// What the first thread does beside its work, when all have done some. There is nobody else: all CPUs are busy.
static void control(void) {
  static long seen[MOST];
  static int round;
  for (int i = 0; i < threads; ++i)
    if (atomic_load(&turns[i]) <= seen[i]) return;
  for (int i = 0; i < threads; ++i) seen[i] = atomic_load(&turns[i]);
  const int share = local_share();
  if (share < 90) return;
  printf("%d %% local\n", share);
  if (round++ == rounds) {
    atomic_store(&stop, 1);
    return;
  }
  for (int i = 0; i < threads; ++i) move_away(i);
  printf("moved away: %d %% local\n", local_share());
  fflush(stdout);
}

static void* work(void* argument) {
  const int me = (int)(intptr_t)argument;
  while (!atomic_load(&stop)) {
    atomic_store(&node_of[me], bosk_topo_node_of(bosk_here()));
    for (int i = 0; i < PAGES; ++i) area_of[me][(size_t)i * kPage] += 1;
    atomic_fetch_add(&turns[me], 1);
    if (me == 0) control();
  }
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 4, "nodes, CPUs of each, rounds");
  there = atoi(argv[1]);
  threads = there * atoi(argv[2]);
  rounds = atoi(argv[3]);
  CHECK(there > 1 && threads <= MOST, "%d threads", threads);
  bosk_bubble_t program, team = NULL;
  bosk_thread_t thread[MOST];
  bosk_thread_attr_t attr;
  OK(bosk_bubble_create(&program));
  OK(bosk_thread_attr_init(&attr));
  for (int i = 0; i < threads; ++i) {
    if (i % atoi(argv[2]) == 0) {
      OK(bosk_bubble_create(&team));
      OK(bosk_bubble_insert_bubble(program, team));
    }
    area_of[i] = fresh_small_pages((size_t)PAGES * kPage);
    OK(bosk_mem_register(area_of[i], (size_t)PAGES * kPage));
    attr.bubble = team;
    OK(bosk_thread_create(&thread[i], &attr, work, (void*)(intptr_t)i));
    OK(bosk_mem_attach_thread(area_of[i], thread[i], BOSK_MEM_READS_AND_WRITES, 100000));
  }
  OK(bosk_bubble_wake(program, NULL));
  for (int i = 0; i < threads; ++i) OK(bosk_thread_join(thread[i], NULL));
  return passed();
}
