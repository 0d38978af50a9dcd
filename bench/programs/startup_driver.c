// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Times spawn-to-exit of a program: startup_driver LIBDIR PROGRAM ARGS… prints the median. LIBDIR
// becomes the program's LD_LIBRARY_PATH; "-" leaves it unset. The driver itself uses no runtime.
#include <spawn.h>
#include <sys/wait.h>

#include "bench.h"

extern char** environ;

static double spawn_and_wait(char** argv) {
  pid_t child;
  int status;
  const double start = now_ns();
  if (posix_spawn(&child, argv[0], NULL, NULL, argv, environ) != 0)
    bench_fail("cannot start the program");
  if (waitpid(child, &status, 0) != child || status != 0) bench_fail("the started program failed");
  return now_ns() - start;
}

int main(int argc, char** argv) {
  enum { kMost = 200 };
  double times[kMost];
  if (argc < 3) bench_fail("usage: startup_driver LIBDIR PROGRAM ARGS…");
  if (strcmp(argv[1], "-") == 0)
    unsetenv("LD_LIBRARY_PATH");
  else
    setenv("LD_LIBRARY_PATH", argv[1], 1);
  for (int i = 0; i < 3; i++) spawn_and_wait(argv + 2);
  const double start = now_ns(), enough = bench_sample_ns() * kBenchSamples;
  int taken = 0;
  while (taken < kMost && (taken < 10 || now_ns() - start < enough))
    times[taken++] = spawn_and_wait(argv + 2);
  bench_print("startup", bench_median(times, taken) / 1e6, "ms");
  return 0;
}
