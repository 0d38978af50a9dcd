// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same shapes on oneTBB: nested loops for nested regions (a loop has no thread identity and no
// barrier, so this is a bound, not an equal), and fib by tasks.
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include "bench.h"

namespace {

template <class Body>
void loop(int size, Body body) {
  // One chunk per index: each stands for a thread of a team.
  tbb::parallel_for(
      tbb::blocked_range<int>(0, size, 1),
      [&](const tbb::blocked_range<int>& range) {
        for (int i = range.begin(); i != range.end(); i++) body();
      },
      tbb::simple_partitioner());
}

double nested(void* context, long count) {
  const int size = *static_cast<const int*>(context);
  const double start = now_ns();
  loop(size, [&] {
    for (long i = 0; i < count; i++) loop(size, [] { BENCH_KEEP(); });
  });
  return now_ns() - start;
}

double nested_once(void* context, long count) {
  const int size = *static_cast<const int*>(context);
  const double start = now_ns();
  for (long i = 0; i < count; i++) loop(size, [&] { loop(size, [] { BENCH_KEEP(); }); });
  return now_ns() - start;
}

long fib(int n) {
  if (n < 2) return n;
  long a = 0;
  tbb::task_group group;
  group.run([&] { a = fib(n - 1); });
  const long b = fib(n - 2);
  group.wait();
  return a + b;
}

double fib_run(void*, long count) {
  const double start = now_ns();
  for (long i = 0; i < count; i++)
    if (fib(25) != 75025) bench_fail("fib: wrong result");
  return now_ns() - start;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) bench_fail("usage: tbb nested N|nested-once N|fib");
  if (strcmp(argv[1], "fib") == 0) {
    // One task for each call that is not a leaf: half as many as the OpenMP program makes.
    bench_print("fib", bench_measure(fib_run, nullptr) / 121392, "ns");
    return 0;
  }
  int size = bench_int(argc, argv, 2);
  const BenchRun run = strcmp(argv[1], "nested") == 0        ? nested
                       : strcmp(argv[1], "nested-once") == 0 ? nested_once
                                                             : nullptr;
  if (run == nullptr) bench_fail("tbb: unknown case");
  bench_print(argv[1], bench_measure(run, &size) / size / 1e3, "us");
  return 0;
}
