// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The smallest program that shows whether a team works; with an argument, also which library it is on.
#include <omp.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  int threads = 0;
  long sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
#pragma omp single
    threads = omp_get_num_threads();
#pragma omp for schedule(dynamic, 7)
    for (int i = 0; i < 1000; i++) sum += i;
  }
  printf("%d threads, sum %ld\n", threads, sum);
  if (argc > 1 && strcmp(argv[1], "maps") == 0) {
    char line[4096];
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
      if (strstr(line, "libgomp")) fputs(line, stdout);
  }
  return 0;
}
