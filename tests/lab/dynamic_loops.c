// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Do dynamic and guided loops leave data where it is? Vectors are touched first by a static loop, then read
// and written by dynamic,K and guided ones, by a team that is bound all over the machine; in every chunk the
// kernel is asked where the thread runs, and afterwards where the pages are.
//
//   dynamic_loops LEAST      at least LEAST % of the pages must be used on their own node; 0: only tell
#include "numa.h"

#include <omp.h>

enum { kPagesEach = 48, kRounds = 6, kWork = 60 };

static char* vector;
static int pages;
static int *node_of_page, *node_of_use;  // node_of_use: by the page's number, of the last loop

/// A page's worth of work; enough of it that threads which share a CPU of the host take turns.
static void use(int page) {
  double* const a = (double*)(vector + (size_t)page * kPage);
  for (int turn = 0; turn < kWork; ++turn)
    for (size_t i = 0; i < kPage / sizeof(double); ++i) a[i] = a[i] * 0.5 + 1;
  unsigned cpu, node;
  where_am_i(&cpu, &node);
  node_of_use[page] = (int)node;
}

static double share_of_local(const char* name) {
  int local = 0;
  for (int i = 0; i < pages; ++i) {
    CHECK(node_of_use[i] >= 0, "%s: page %d was not used", name, i);
    local += node_of_use[i] == node_of_page[i];
    node_of_use[i] = -1;
  }
  return 100.0 * local / pages;
}

static double dynamic_loop(int chunk) {
#pragma omp parallel for schedule(dynamic, chunk)
  for (int i = 0; i < pages; ++i) use(i);
  return share_of_local("dynamic");
}

static double guided_loop(int chunk) {
#pragma omp parallel for schedule(guided, chunk)
  for (int i = 0; i < pages; ++i) use(i);
  return share_of_local("guided");
}

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: dynamic_loops LEAST");
  const double least = atof(argv[1]);
  omp_set_dynamic(0);
  const int threads = omp_get_max_threads();
  pages = threads * kPagesEach;
  vector = fresh_small_pages((size_t)pages * kPage);
  node_of_page = malloc((size_t)pages * sizeof(int));
  node_of_use = malloc((size_t)pages * sizeof(int));
  CHECK(node_of_page != NULL && node_of_use != NULL, "no memory");
#pragma omp parallel for schedule(static)
  for (int i = 0; i < pages; ++i) use(i);
  nodes_of_pages(vector, (size_t)pages, node_of_page);
  const double first = share_of_local("static");
  printf("%d threads, %d pages each; used on the page's own node, %%:\n", threads, kPagesEach);
  printf("static (the first touch)  %6.1f\n", first);
  CHECK(first >= 99, "threads move: %.1f %% of the pages are where they were touched", first);
  static const struct {
    const char* name;
    double (*loop)(int);
    int chunk;
  } cases[] = {{"dynamic,1", dynamic_loop, 1},
               {"dynamic,4", dynamic_loop, 4},
               {"dynamic,12", dynamic_loop, 12},
               {"guided", guided_loop, 1},
               {"guided,4", guided_loop, 4}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    double sum = 0;
    for (int round = 0; round < kRounds; ++round) sum += cases[c].loop(cases[c].chunk);
    const double share = sum / kRounds;
    printf("%-25s %6.1f\n", cases[c].name, share);
    CHECK(share >= least, "%s: only %.1f %%", cases[c].name, share);
  }
  return passed();
}
