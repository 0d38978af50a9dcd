// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nested STREAM by first touch, as examples/nested-stream.f90 does it, but it asks the kernel: in every kernel
// loop, on which nodes the pages lie that a member works on, and on which node it runs. Prints the table and
// judges it: first_touch NODES INNER local|scattered.
//
// local: at least 95 % of the pages are on the node of whoever uses them. scattered: they are not, which is what
// happens where nobody binds threads, and shows that the test can tell.
#include "numa.h"

#include <omp.h>

enum { kKernels = 12, kPagesEach = 64 };

static long table[kMostNodes][kMostNodes];  // [node of the CPU][node of the page]

static void work_on(double* a, const double* b, size_t count, double factor) {
  for (size_t i = 0; i < count; ++i) a[i] = b[i] * factor + 1;
}

/// A member's part of its domain's vectors: what schedule(static) would give it.
static void kernel(char* vector, size_t member, int first) {
  char* const part = vector + member * kPagesEach * kPage;
  const size_t count = kPagesEach * kPage / sizeof(double) / 2;
  double* const a = (double*)part;
  if (first) {
    memset(part, 0, kPagesEach * kPage);
  } else {
    work_on(a, a + count, count, 0.5);
  }
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  int nodes[kPagesEach];
  nodes_of_pages(part, kPagesEach, nodes);
  for (int i = 0; i < kPagesEach; ++i) {
    CHECK(nodes[i] >= 0 && nodes[i] < kMostNodes, "page %d: %s", i, strerror(-nodes[i]));
    // The first touch is not counted: it is local by definition, if the thread does not move meanwhile.
    if (!first) __atomic_fetch_add(&table[node][nodes[i]], 1, __ATOMIC_RELAXED);
  }
}

static double print_table(int nodes) {
  long local = 0;
  long all = 0;
  printf("pages used, by node of the CPU (lines) and of the page (columns)\n");
  for (int from = 0; from < nodes; ++from) {
    printf("%4d", from);
    for (int to = 0; to < nodes; ++to) {
      printf(" %8ld", table[from][to]);
      all += table[from][to];
      if (from == to) local += table[from][to];
    }
    printf("\n");
  }
  const double share = all > 0 ? 100.0 * (double)local / (double)all : 0;
  printf("local: %.1f %%\n", share);
  return share;
}

int main(int argc, char** argv) {
  CHECK(argc == 4, "usage: first_touch NODES INNER local|scattered");
  const int nodes = atoi(argv[1]);
  const int inner = atoi(argv[2]);
  CHECK(nodes > 0 && nodes <= kMostNodes && inner > 0, "no such teams");
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(nodes)
  {
    char* const vector = fresh_small_pages((size_t)inner * kPagesEach * kPage);
    for (int round = 0; round <= kKernels; ++round) {
#pragma omp parallel num_threads(inner)
      kernel(vector, (size_t)omp_get_thread_num(), round == 0);
    }
  }
  const double share = print_table(nodes);
  if (!strcmp(argv[3], "local")) {
    CHECK(share >= 95, "only %.1f %% of the pages are local", share);
  } else {
    CHECK(share < 95, "%.1f %% of the pages are local, though nobody is bound", share);
  }
  return passed();
}
