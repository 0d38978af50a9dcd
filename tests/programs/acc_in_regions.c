// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenACC inside OpenMP: every thread of nested teams runs constructs of its own, and has its own
// device, switch for events and data regions. acc_in_regions OUTER INNER
#include "check.h"

#include <acc_prof.h>
#include <omp.h>
#include <stdatomic.h>

enum { kRounds = 20, kLength = 64 };

static atomic_long starts, ends;

static void count(acc_prof_info* prof, acc_event_info* event, acc_api_info* api) {
  (void)event;
  (void)api;
  atomic_fetch_add(prof->event_type == acc_ev_compute_construct_start ? &starts : &ends, 1);
}

static long work(long seed) {
  long values[kLength], sum = 0;
#pragma acc data create(values) copy(sum)
  {
#pragma acc parallel loop firstprivate(seed) present(values)
    for (int i = 0; i < kLength; ++i) values[i] = seed + i;
#pragma acc parallel loop reduction(+ : sum) present(values)
    for (int i = 0; i < kLength; ++i) sum += values[i];
  }
  return sum;
}

int main(int argc, char** argv) {
  const int outer = argc > 1 ? atoi(argv[1]) : 4, inner = argc > 2 ? atoi(argv[2]) : 4;
  long wrong = 0, constructs = 0;
  acc_prof_register(acc_ev_compute_construct_start, count, acc_reg);
  acc_prof_register(acc_ev_compute_construct_end, count, acc_reg);
  acc_init(acc_device_host);
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(outer) reduction(+ : wrong, constructs)
#pragma omp parallel num_threads(inner) reduction(+ : wrong, constructs)
  {
    const long seed = 100 * omp_get_ancestor_thread_num(1) + omp_get_thread_num();
    for (int round = 0; round < kRounds; ++round) {
      wrong += work(seed + round) != kLength * (seed + round) + kLength * (kLength - 1) / 2;
      constructs += 2;
      // The others are in the middle of theirs.
      wrong += acc_async_test(round) != 1 || acc_get_device_type() != acc_device_host;
    }
  }
  CHECK(wrong == 0, "%ld wrong results", wrong);
  CHECK(starts == constructs && ends == constructs, "%ld constructs, %ld starts, %ld ends",
        constructs, (long)starts, (long)ends);
  // All data regions are closed again, whoever opened them.
  acc_shutdown(acc_device_host);
  return passed();
}
