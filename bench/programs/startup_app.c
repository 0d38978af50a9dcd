// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program whose start is timed: linked with the OpenMP runtime, with as many regions as its
// argument says.
#include <omp.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int regions = argc > 1 ? atoi(argv[1]) : 0;
  const int expected = omp_get_max_threads();
  for (int i = 0; i < regions; i++) {
    int members = 0;
#pragma omp parallel reduction(+ : members)
    members++;
    if (members != expected) return 1;
  }
  return 0;
}
