// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many nested threads at once: outer x inner members which all meet, team by team and all together.
#include "check.h"

#include <omp.h>

int main(int argc, char** argv) {
  int outer = argc > 1 ? atoi(argv[1]) : 64, inner = argc > 2 ? atoi(argv[2]) : 64;
  int rounds = argc > 3 ? atoi(argv[3]) : 5;
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  int all = outer * inner, total = 0;
  int* arrived = calloc((size_t)outer * (size_t)rounds, sizeof *arrived);
  unsigned char* ran = calloc((size_t)all, 1);
  CHECK(arrived && ran, "no memory");
  for (int region = 0; region < 3; ++region) {
    memset(arrived, 0, sizeof(int) * (size_t)outer * (size_t)rounds);
    memset(ran, 0, (size_t)all);
    total = 0;
#pragma omp parallel num_threads(outer) shared(total)
    {
      int team = omp_get_thread_num();
      CHECK(omp_get_num_threads() == outer, "outer team of %d, wanted %d", omp_get_num_threads(),
            outer);
#pragma omp parallel num_threads(inner) shared(total)
      {
        int me = omp_get_thread_num();
        CHECK(omp_get_num_threads() == inner, "inner team of %d, wanted %d", omp_get_num_threads(),
              inner);
        ran[team * inner + me]++;
        for (int round = 0; round < rounds; ++round) {
          int* count = &arrived[team * rounds + round];
          __atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL);
          __atomic_add_fetch(&total, 1, __ATOMIC_ACQ_REL);
#pragma omp barrier
          int seen = __atomic_load_n(count, __ATOMIC_ACQUIRE);
          CHECK(seen == inner, "team %d round %d: %d members passed the barrier before all came",
                team, round, seen);
        }
      }
      // The outer members meet, too: now every inner team has been through.
#pragma omp barrier
      int seen = __atomic_load_n(&total, __ATOMIC_ACQUIRE);
      CHECK(seen == all * rounds, "%d arrivals after the outer barrier, expected %d", seen,
            all * rounds);
    }
    for (int i = 0; i < all; ++i) CHECK(ran[i] == 1, "member %d ran %d times", i, ran[i]);
  }
  // All of them alive at the same time: nobody leaves before everybody has come. Each member that polls
  // costs a preemption or a sleep, so not with thousands.
  if (all > 256) return passed();
  int present = 0;
#pragma omp parallel num_threads(outer) shared(present)
#pragma omp parallel num_threads(inner) shared(present)
  {
    __atomic_add_fetch(&present, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&present, __ATOMIC_ACQUIRE) < all) {
#pragma omp taskyield
      usleep(1000);
    }
  }
  CHECK(present == all, "%d members were present, expected %d", present, all);
  free(arrived);
  free(ran);
  return passed();
}
