// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Team sizes that change from region to region, flat and nested, with a barrier and without.
#include "check.h"

#include <omp.h>

static void flat(int small, int large, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    int size = round % 2 ? large : small, members = 0, bits = 0;
#pragma omp parallel num_threads(size) reduction(+ : members) reduction(^ : bits)
    {
      CHECK(omp_get_num_threads() == size, "team of %d, wanted %d", omp_get_num_threads(), size);
      members++;
      bits ^= omp_get_thread_num();
      if (round % 3 == 0) {
#pragma omp barrier
        members++;
      }
    }
    int expected_bits = 0;
    for (int i = 0; i < size; ++i) expected_bits ^= i;
    CHECK(members == size * (round % 3 == 0 ? 2 : 1) && bits == expected_bits,
          "round %d: %d members of %d", round, members, size);
  }
}

static void nested(int small, int large, int rounds) {
  int total = 0, expected = 0;
#pragma omp parallel num_threads(4) reduction(+ : total)
  for (int round = 0; round < rounds; ++round) {
    int size = (round + omp_get_thread_num()) % 2 ? large : small, members = 0;
#pragma omp parallel num_threads(size) reduction(+ : members)
    {
      members++;
#pragma omp barrier
    }
    CHECK(members == size, "nested round %d: %d members of %d", round, members, size);
    total += members;
  }
  for (int thread = 0; thread < 4; ++thread)
    for (int round = 0; round < rounds; ++round) expected += (round + thread) % 2 ? large : small;
  CHECK(total == expected, "%d members in all, expected %d", total, expected);
}

/// The outer size changes while the inner one does, too.
static void both(int rounds) {
  static const int outer_sizes[] = {2, 8, 3, 16, 1, 5}, inner_sizes[] = {4, 2, 7, 1, 16, 3, 9};
  for (int round = 0; round < rounds; ++round) {
    int outer = outer_sizes[round % 6], inner = inner_sizes[round % 7], members = 0;
#pragma omp parallel num_threads(outer)
    {
      CHECK(omp_get_num_threads() == outer, "team of %d, wanted %d", omp_get_num_threads(), outer);
#pragma omp parallel num_threads(inner)
      {
#pragma omp atomic
        members++;
      }
    }
    CHECK(members == outer * inner, "round %d: %d members, expected %d", round, members,
          outer * inner);
  }
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 200;
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  flat(2, 4, rounds);
  flat(4, 8, rounds);
  flat(2, 64, rounds);
  flat(1, 16, rounds);
  for (int size = 1; size <= 64; ++size) flat(size, 65 - size, 2);
  nested(2, 4, rounds / 4);
  nested(2, 64, rounds / 10);
  both(rounds / 4);
  return passed();
}
