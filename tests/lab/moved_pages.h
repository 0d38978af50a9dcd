// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that tell on which node they are, with memory of their own, which somebody moves away from there.
#pragma once

#include "numa.h"

#include <stdatomic.h>

enum { MOST = 64, PAGES = 64, MPOL_MOVE = 1 << 1 };

static int there, threads;  // nodes; threads
static char* area_of[MOST];
static _Atomic int node_of[MOST];
static _Atomic long turns[MOST];
static _Atomic int stop;

/// Percent of all pages that lie where their threads are.
static int local_share(void) {
  int local = 0, found[PAGES];
  for (int i = 0; i < threads; ++i) {
    nodes_of_pages(area_of[i], PAGES, found);
    for (int page = 0; page < PAGES; ++page) local += found[page] == atomic_load(&node_of[i]);
  }
  return local * 100 / (threads * PAGES);
}

/// To the next node.
static void move_away(int i) {
  void* pages[PAGES];
  int nodes[PAGES], found[PAGES];
  for (int page = 0; page < PAGES; ++page) {
    pages[page] = area_of[i] + (size_t)page * kPage;
    nodes[page] = (atomic_load(&node_of[i]) + 1) % there;
  }
  CHECK(syscall(SYS_move_pages, 0, (long)PAGES, pages, nodes, found, (long)MPOL_MOVE) >= 0,
        "move_pages: %s", strerror(errno));
}
