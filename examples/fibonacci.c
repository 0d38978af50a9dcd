// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fibonacci numbers by recursive nested regions, the test case of Thibault 2005 (figure 5).
//
// Every call opens a region of two members which compute the two smaller numbers, down to a given depth;
// the leaves count sequentially. Nobody would compute Fibonacci numbers so: what is measured is the price
// of regions inside regions.
//
//   fibonacci [n depth repeats]
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static long sequential(int n) { return n < 2 ? n : sequential(n - 1) + sequential(n - 2); }

static long nested(int n, int depth, long* regions) {
  if (n < 2 || depth == 0) return sequential(n);
  long part[2], opened[2] = {0, 0};
#pragma omp parallel num_threads(2) shared(part, opened)
  {
    int me = omp_get_thread_num();
    if (omp_get_num_threads() == 2) {
      part[me] = nested(n - 1 - me, depth - 1, &opened[me]);
    } else {  // the runtime gave one thread only
      part[0] = nested(n - 1, depth - 1, &opened[0]);
      part[1] = nested(n - 2, depth - 1, &opened[1]);
    }
  }
  *regions += 1 + opened[0] + opened[1];
  return part[0] + part[1];
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 20;
  int depth = argc > 2 ? atoi(argv[2]) : 8;
  int repeats = argc > 3 ? atoi(argv[3]) : 100;
  if (n < 0 || n > 60 || depth < 0 || depth > 250 || repeats < 1) {
    fprintf(stderr, "usage: fibonacci [n depth repeats]   n 0..60, depth 0..250\n");
    return 2;
  }
  omp_set_max_active_levels(depth + 1);
  long regions = 0, checksum = 0;
  double start = omp_get_wtime();
  for (int repeat = 0; repeat < repeats; ++repeat) checksum += nested(n, depth, &regions);
  double elapsed = omp_get_wtime() - start;

  long expected = sequential(n) * repeats;
  printf("fib(%d), %d times, %ld regions\n", n, repeats, regions);
  printf("checksum: %ld\n", checksum);
  printf("time: %.3f s\n", elapsed);
  if (regions > 0) printf("per region: %.3f us\n", elapsed * 1e6 / (double)regions);
  if (checksum != expected) {
    printf("fibonacci: got %ld, the sequential run gives %ld\n", checksum, expected);
    return 1;
  }
  return 0;
}
