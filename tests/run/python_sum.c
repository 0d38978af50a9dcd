// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library that Python loads: each of outer x inner members adds `number`.
#include <omp.h>

int team_sum(int outer, int inner, int number);

int team_sum(int outer, int inner, int number) {
  int sum = 0;
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(outer) reduction(+ : sum)
  {
#pragma omp barrier
#pragma omp parallel num_threads(inner) reduction(+ : sum)
    {
#pragma omp barrier
      sum += number;
    }
  }
  return sum;
}
