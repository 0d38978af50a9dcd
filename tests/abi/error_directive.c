// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The error directive at run time: error_directive warning|fatal.
#include "../programs/check.h"

int main(int argc, char** argv) {
  CHECK(argc == 2, "usage: error_directive warning|fatal");
#pragma omp error at(execution) severity(warning)
#pragma omp error at(execution) severity(warning) message("first warning")
  const char* message = argc > 0 ? "second warning" : "";
#pragma omp error at(execution) severity(warning) message(message)
  printf("after the warnings\n");
  fflush(stdout);
  if (strcmp(argv[1], "fatal") == 0) {
#pragma omp error at(execution) severity(fatal) message("that is all")
    printf("still here\n");
  }
  return 0;
}
