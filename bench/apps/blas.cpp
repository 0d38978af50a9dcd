// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A BLAS with threads of its own, called by one thread or by several at a time.
//   blas one N REPETITIONS                  DGEMM of N x N by all threads of OMP_NUM_THREADS
//   blas omp|std OUTER INNER N REPETITIONS  by OUTER threads at a time (an OpenMP region, or std::thread), each with INNER
#include <cblas.h>
#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

extern "C" void openblas_set_num_threads(int);

namespace {

class Product {
 public:
  explicit Product(int n) : n_(n), a_(size()), b_(size()), c_(size()) {
    for (size_t i = 0; i < size(); ++i) {
      a_[i] = static_cast<double>(i % 7);
      b_[i] = static_cast<double>(i % 5);
    }
  }
  void compute() {
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n_, n_, n_, 1.0, a_.data(), n_,
                b_.data(), n_, 0.0, c_.data(), n_);
  }
  double sum() const {
    double all = 0;
    for (double value : c_) all += value;
    return all;
  }

 private:
  size_t size() const { return static_cast<size_t>(n_) * static_cast<size_t>(n_); }
  int n_;
  std::vector<double> a_, b_, c_;
};

double repeated(int n, int repetitions) {
  Product product(n);
  for (int i = 0; i < repetitions; ++i) product.compute();
  return product.sum();
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at) { return at < argc ? atoi(argv[at]) : 0; };
  if (argc == 4 && strcmp(argv[1], "one") == 0) {
    printf("%.0f\n", repeated(number(2), number(3)));
    return 0;
  }
  const bool by_openmp = argc == 6 && strcmp(argv[1], "omp") == 0;
  if (!by_openmp && (argc != 6 || strcmp(argv[1], "std") != 0)) {
    fprintf(stderr, "usage: blas one N REPETITIONS | blas omp|std OUTER INNER N REPETITIONS\n");
    return 2;
  }
  const int outer = number(2), inner = number(3), n = number(4), repetitions = number(5);
  std::vector<double> sums(static_cast<size_t>(outer));
  const auto work = [&](int me) {
    omp_set_num_threads(inner);
    sums[static_cast<size_t>(me)] = repeated(n, repetitions);
  };
  if (by_openmp) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(outer)
    work(omp_get_thread_num());
  } else {
    std::vector<std::thread> threads;
    for (int i = 0; i < outer; ++i) threads.emplace_back(work, i);
    for (auto& thread : threads) thread.join();
  }
  double all = 0;
  for (double sum : sums) all += sum;
  printf("%.0f\n", all);
}
