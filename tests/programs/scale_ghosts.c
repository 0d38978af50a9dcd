// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A million members in all, in nested teams that come and go: each runs once and memory stays flat.
#include "check.h"

#include <omp.h>
#include <sys/resource.h>

static long peak_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

static long long sum;
static long members;

static void regions(int outer, int inner, long repeats) {
#pragma omp parallel num_threads(outer) reduction(+ : sum, members)
  for (long r = 0; r < repeats; ++r) {
    long long team_sum = 0;
    long count = 0;
#pragma omp parallel num_threads(inner) reduction(+ : team_sum, count)
    {
      team_sum += omp_get_thread_num() + 1;
      count++;
    }
    CHECK(count == inner && team_sum == (long long)inner * (inner + 1) / 2,
          "a team of %d: %ld members, sum %lld", inner, count, team_sum);
    sum += team_sum;
    members += count;
  }
}

int main(int argc, char** argv) {
  long wanted = argc > 1 ? atol(argv[1]) : 1000000;
  long growth_limit = argc > 2 ? atol(argv[2]) : 64 * 1024;
  static const int shapes[][2] = {{2, 64}, {8, 8}, {64, 64}, {16, 16}, {4, 256}};
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  // One round of every shape first: pools are filled, stacks are touched.
  for (int s = 0; s < 5; ++s) regions(shapes[s][0], shapes[s][1], 2);
  long before = peak_kib();
  members = 0;
  sum = 0;
  long long expected = 0;
  for (int s = 0; s < 5; ++s) {
    int outer = shapes[s][0], inner = shapes[s][1];
    long repeats = (wanted / 5 + outer * inner - 1) / (outer * inner);
    regions(outer, inner, repeats);
    expected += (long long)outer * repeats * inner * (inner + 1) / 2;
  }
  long after = peak_kib();
  CHECK(members >= wanted, "%ld members ran, wanted %ld", members, wanted);
  CHECK(sum == expected, "sum %lld, expected %lld", sum, expected);
  CHECK(after - before < growth_limit, "memory grew from %ld to %ld KiB", before, after);
  return passed();
}
