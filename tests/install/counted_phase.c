// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that is built against the installed headers, and no library: a phase of it would be counted in the lab.
#include <bosk/markers.h>
#include <stdio.h>

int main(void) {
  long sum = 0;
  BOSK_LAB_MARK(BOSK_LAB_BEGIN);
  for (long i = 0; i < 1000; ++i) sum += i;
  BOSK_LAB_MARK(BOSK_LAB_END);
  printf("sum %ld\n", sum);
  return 0;
}
