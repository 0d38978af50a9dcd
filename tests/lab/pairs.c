// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pairs of threads that share data, and all that the program says of them is that they are teams of two:
// pairs PAIRS ROUNDS. Each member of the outer team has a block. A team of two touches it first, half each, and other
// teams of two work on it then, round after round.
//
// Prints for check_policies.py, of all rounds of second members, how many had their worker's processor under the last
// cache of the first one's, how many ran on the node where the first one did (the kernel may have moved either), how
// many on the node of their half, and of those on other nodes than the first their distance, by the firmware's
// table, added up:
//   pairs: N samples, N cache, N together, N local, N apart
#include "pair_blocks.h"

#include <bosk/topology.h>

#include <omp.h>

enum { kWarm = 400 };

static int cache_level;
static long under_one_cache;

struct place {
  unsigned node;
  int pu;
};

static struct place here(void) {
  struct place p = {my_node(), bosk_here()};
  CHECK(p.pu >= 0, "no processor: %d", p.pu);
  return p;
}

static void run_pair(unsigned pair, unsigned rounds) {
#pragma omp parallel num_threads(2)
  {
    CHECK(omp_get_num_threads() == 2, "%d members", omp_get_num_threads());
    first_touch(pair, (unsigned)omp_get_thread_num());
  }
  for (unsigned round = 0; round < rounds; ++round) {
    struct place of[2];
#pragma omp parallel num_threads(2)
    {
      const unsigned me = (unsigned)omp_get_thread_num();
      work(pair, round, me);
      of[me] = here();
    }
    count(pair, 1, of[1].node, of[0].node);
    const int shared = bosk_topo_shares(cache_level, of[0].pu, of[1].pu);
    CHECK(shared >= 0, "PUs %d and %d: %s", of[0].pu, of[1].pu, bosk_strerror(shared));
    __atomic_fetch_add(&under_one_cache, shared, __ATOMIC_RELAXED);
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 3 && atoi(argv[2]) > 0, "usage: pairs PAIRS ROUNDS");
  make_blocks((unsigned)atoi(argv[1]));
  const unsigned rounds = (unsigned)atoi(argv[2]);
  cache_level = bosk_topo_level("llc");
  CHECK(cache_level >= 0, "no last cache: %s", bosk_strerror(cache_level));
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  // Until workers are where teams of these sizes have them (docs/binding.md).
  for (int i = 0; i < kWarm; ++i) {
#pragma omp parallel num_threads(pairs)
    {
      const unsigned pair = (unsigned)omp_get_thread_num();
#pragma omp parallel num_threads(2)
      stay_busy(sweeps_of(pair, (unsigned)i, (unsigned)omp_get_thread_num()));
    }
  }
#pragma omp parallel num_threads(pairs)
  run_pair((unsigned)omp_get_thread_num(), rounds);
  check_values(rounds);
  printf("pairs: %ld samples, %ld cache, %ld together, %ld local, %ld apart\n", samples,
         under_one_cache, together, local, distance);
  return passed();
}
