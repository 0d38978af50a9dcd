// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nested STREAM as examples/nested-stream.f90 has it, for machines whose CPUs take turns:
// nested_stream DOMAINS THREADS ELEMENTS REPEATS. Each member of the outer team has vectors of its own, of ELEMENTS for
// each thread of the inner teams that it opens. These touch them first, and work on them ever after: four kernels a
// repeat, each in a region of its own. Nothing but the teams says who is to run where.
//
// A CPU of the lab keeps its turn for up to 100 ms, in which a member opens hundreds of such regions and runs all of
// them itself, whoever it has called; the example cannot show there who would have come. Here all CPUs pause
// every few elements, which gives the turn away, so that they run side by side.
//
// Prints for check_policies.py how many parts of kernels ran on the node of the memory that they worked on, and the table,
// by the node where each began and the node of its part's first page:
//   stream: N samples, N local
// Where BOSK_LAB_OBJECTS names a file, it gets a line for each domain (docs/locality.md).
#include "numa.h"

#include <omp.h>

enum { kMostDomains = 64, kMostThreads = 64, kPiece = 24 };

enum kernel { kCopy, kScale, kAdd, kTriad, kKernels };

static int threads;
static size_t elements;
static long table[kMostNodes][kMostNodes];  ///< [node of the CPU][node of the page]

static size_t length(void) { return (size_t)threads * elements; }

static void give_turn(size_t i) {
#if defined(__x86_64__)
  if (i % kPiece == 0) __builtin_ia32_pause();
#else
  (void)i;
#endif
}

static double first_value(size_t i) { return (double)(1 + i % 7); }

/// A repeat leaves a as it was, b three times and c four times that, to the last bit.
static void work(enum kernel kernel, double* a, double* b, double* c) {
  for (size_t i = 0; i < elements; ++i) {
    switch (kernel) {
      case kCopy:
        c[i] = a[i];
        break;
      case kScale:
        b[i] = 3 * c[i];
        break;
      case kAdd:
        c[i] = a[i] + b[i];
        break;
      default:
        a[i] = b[i] - 0.5 * c[i];
    }
    give_turn(i);
  }
}

static void touch_first(double* a, double* b, double* c, size_t first) {
  for (size_t i = 0; i < elements; ++i) {
    a[i] = first_value(first + i);
    b[i] = c[i] = 0;
    give_turn(i);
  }
}

static void check_part(const double* a, const double* b, const double* c, size_t first) {
  for (size_t i = 0; i < elements; ++i) {
    const double value = first_value(first + i);
    CHECK(a[i] == value && b[i] == 3 * value && c[i] == 4 * value,
          "element %zu: %g, %g, %g, not %g", first + i, a[i], b[i], c[i], value);
    give_turn(i);
  }
}

static double* make_vectors(int domain) {
  const size_t bytes = 3 * length() * sizeof(double);
  double* const vectors = (double*)fresh_small_pages(bytes);
  const char* path = getenv("BOSK_LAB_OBJECTS");
  if (path == NULL) return vectors;
  FILE* file = fopen(path, "a");
  CHECK(file != NULL, "%s: %s", path, strerror(errno));
  fprintf(file, "%p %zu domain %d\n", (void*)vectors, bytes, domain);
  fclose(file);
  return vectors;
}

static void count(int home) {
  unsigned cpu;
  unsigned node;
  where_am_i(&cpu, &node);
  CHECK(home >= 0 && home < kMostNodes, "a page that was touched: %s", strerror(-home));
  __atomic_fetch_add(&table[node][home], 1, __ATOMIC_RELAXED);
}

static void print_table(void) {
  long samples = 0;
  long local = 0;
  int nodes = 0;
  for (int cpu = 0; cpu < kMostNodes; ++cpu)
    for (int page = 0; page < kMostNodes; ++page) {
      if (table[cpu][page] == 0) continue;
      samples += table[cpu][page];
      if (cpu == page) local += table[cpu][page];
      if (nodes <= cpu) nodes = cpu + 1;
      if (nodes <= page) nodes = page + 1;
    }
  for (int cpu = 0; cpu < nodes; ++cpu) {
    printf("table:");
    for (int page = 0; page < nodes; ++page) printf(" %ld", table[cpu][page]);
    printf("\n");
  }
  printf("stream: %ld samples, %ld local\n", samples, local);
}

static void run(double* a, int repeats) {
  int home[kMostThreads];
  double* const b = a + length();
  double* const c = b + length();
  for (int round = -1; round <= repeats * kKernels; ++round) {
#pragma omp parallel num_threads(threads)
    {
      CHECK(omp_get_num_threads() == threads, "%d threads", omp_get_num_threads());
      const int me = omp_get_thread_num();
      const size_t first = (size_t)me * elements;
      if (round < 0) {
        touch_first(a + first, b + first, c + first, first);
        nodes_of_pages((char*)(a + first), 1, &home[me]);
      } else if (round < repeats * kKernels) {
        count(home[me]);
        work((enum kernel)(round % kKernels), a + first, b + first, c + first);
      } else {
        check_part(a + first, b + first, c + first, first);
      }
    }
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 5, "usage: nested_stream DOMAINS THREADS ELEMENTS REPEATS");
  const int domains = atoi(argv[1]);
  threads = atoi(argv[2]);
  elements = (size_t)atol(argv[3]);
  const int repeats = atoi(argv[4]);
  CHECK(domains > 0 && domains <= kMostDomains && threads > 0 && threads <= kMostThreads &&
            repeats > 0,
        "no such teams");
  CHECK(elements > 0 && elements * sizeof(double) % kPage == 0, "not whole pages");
  // Before the regions: who writes files in there is late for his own team, and others come in his place.
  double* vectors[kMostDomains];
  for (int i = 0; i < domains; ++i) vectors[i] = make_vectors(i);
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(domains)
  {
    CHECK(omp_get_num_threads() == domains, "%d domains", omp_get_num_threads());
    run(vectors[omp_get_thread_num()], repeats);
  }
  print_table();
  return passed();
}
