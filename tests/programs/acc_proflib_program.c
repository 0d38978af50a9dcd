// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that knows nothing of profiling: acc_proflib_program FILE… runs itself again with these
// files of BOSK_TEST_DIR in ACC_PROFLIB. The manifest says what the libraries must print beside it.
#include "check.h"

static int runs;

static void run_with_libraries(char** argv) {
  const char* folder = getenv("BOSK_TEST_DIR");
  CHECK(folder, "no BOSK_TEST_DIR");
  char list[4096] = "";
  for (char** file = argv + 1; *file; ++file) {
    const size_t length = strlen(list);
    CHECK(length + strlen(folder) + strlen(*file) + 3 < sizeof list, "too long");
    // An empty name between two separators is none.
    snprintf(list + length, sizeof list - length, ";%s/%s", folder, *file);
  }
  setenv("ACC_PROFLIB", list, 1);
  char* again[] = {argv[0], NULL};
  execv("/proc/self/exe", again);
  CHECK(0, "cannot run myself: %s", strerror(errno));
}

int main(int argc, char** argv) {
  if (argc > 1) run_with_libraries(argv);
  for (int i = 0; i < 2; ++i) {
#pragma acc parallel copy(runs)
    runs += 1;
#pragma acc update self(runs)
  }
  CHECK(runs == 2, "%d runs", runs);
  return passed();
}
