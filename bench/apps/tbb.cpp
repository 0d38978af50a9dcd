// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members of a team that call a library whose workers are TBB's: tbb CALLS. Who waits for its own loop in there runs pieces
// of others', spins and yields.
#include <omp.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <cstdio>
#include <cstdlib>

namespace {

double sum_of(int begin, int end) {
  double sum = 0;
  for (int i = begin; i != end; ++i) {
    double value = i % 7;
    for (int k = 0; k < 20; ++k) value = value * 0.5 + 1;
    sum += value > 0 ? i % 5 : 0;
  }
  return sum;
}

double library_call() {
  return tbb::parallel_reduce(
      tbb::blocked_range<int>(0, 20000, 500), 0.0,
      [](const tbb::blocked_range<int>& part, double sum) {
        return sum + sum_of(part.begin(), part.end());
      },
      [](double a, double b) { return a + b; });
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc == 2 ? std::atoi(argv[1]) : 0;
  if (calls <= 0) {
    std::fprintf(stderr, "usage: tbb CALLS\n");
    return 2;
  }
  double all = 0;
  for (int call = 0; call < calls; ++call) {
#pragma omp parallel reduction(+ : all)
    all += library_call();
  }
  std::printf("%.0f\n", all);
}
