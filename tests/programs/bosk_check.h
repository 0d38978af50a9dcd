// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What programs that use bosk.h check with.
#pragma once

#include "check.h"

#include <bosk/bosk.h>

#define OK(call)                                                      \
  do {                                                                \
    const int error_ = (call);                                        \
    CHECK(error_ == BOSK_OK, "%s: %s", #call, bosk_strerror(error_)); \
  } while (0)

/// The call must fail in this way.
#define FAILS(call, code)                                                                          \
  do {                                                                                             \
    const int error_ = (call);                                                                     \
    CHECK(error_ == (code), "%s: %s, not: %s", #call, bosk_strerror(error_), bosk_strerror(code)); \
  } while (0)

struct test {
  const char* name;
  void (*function)(void);
};

/// Runs the one that is named by the first argument.
__attribute__((unused)) static int run_test(int argc, char** argv, const struct test* tests,
                                            size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (argc > 1 && strcmp(argv[1], tests[i].name) == 0) {
      tests[i].function();
      return passed();
    }
  fputs("which test?\n", stderr);
  return 2;
}
#define RUN_TEST(argc, argv, tests) run_test(argc, argv, tests, sizeof(tests) / sizeof((tests)[0]))
