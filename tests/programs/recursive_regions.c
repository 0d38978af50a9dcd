// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Recursive nesting: every call of fib opens a region of two, deeper and deeper.
#include "check.h"

#include <omp.h>

static long fib(int n) {
  if (n < 2) return n;
  long part[2] = {0, 0};
  int level = omp_get_level();
#pragma omp parallel num_threads(2) shared(part)
  {
    CHECK(omp_get_num_threads() == 2, "level %d: team of %d", omp_get_level(),
          omp_get_num_threads());
    CHECK(omp_get_level() == level + 1, "level %d inside level %d", omp_get_level(), level);
    int me = omp_get_thread_num();
    part[me] = fib(n - 1 - me);
  }
  return part[0] + part[1];
}

/// The same with sections, which bind to each team.
static long fib_sections(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
#pragma omp parallel sections num_threads(2) shared(a, b)
  {
#pragma omp section
    a = fib_sections(n - 1);
#pragma omp section
    b = fib_sections(n - 2);
  }
  return a + b;
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 16, rounds = argc > 2 ? atoi(argv[2]) : 5;
  omp_set_dynamic(0);
  omp_set_max_active_levels(255);
  long expected = 0, next = 1;
  for (int i = 0; i < n; ++i) {
    long sum = expected + next;
    expected = next;
    next = sum;
  }
  for (int round = 0; round < rounds; ++round) {
    long result = fib(n);
    CHECK(result == expected, "fib(%d) is %ld, expected %ld", n, result, expected);
    result = fib_sections(n);
    CHECK(result == expected, "fib(%d) by sections is %ld, expected %ld", n, result, expected);
  }
  return passed();
}
