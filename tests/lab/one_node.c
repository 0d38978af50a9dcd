// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program whose memory is all where its first thread is, or where those are that use it: one_node serial|parallel. For its report.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kElements = 24 << 20 };

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  double* a = malloc(kElements * sizeof *a);
  if (a == NULL) return 1;
  if (strcmp(argv[1], "serial") == 0) {
    memset(a, 1, kElements * sizeof *a);  // zeros would be left to calloc
  } else {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < kElements; i++) a[i] = 0;
  }
  double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (long i = 0; i < kElements; i++) sum += a[i] = 1;
  printf("%g\n", sum);
  return sum == kElements ? 0 : 1;
}
