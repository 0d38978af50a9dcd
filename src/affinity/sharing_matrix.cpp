// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/sharing_matrix.h"

#include <algorithm>
#include <cmath>

namespace bosk::affinity {

void SharingMatrix::grow(uint32_t threads) {
  if (threads <= threads_) return;
  if (threads > stride_) {
    const uint32_t stride = std::max(threads, stride_ * 2);
    std::vector<uint32_t> cells(size_t{stride} * stride);
    for (uint32_t t = 0; t < threads_; ++t)
      std::ranges::copy(row(t), cells.begin() + static_cast<ptrdiff_t>(size_t{t} * stride));
    cells_ = std::move(cells);
    stride_ = stride;
  }
  threads_ = threads;
}

void SharingMatrix::add(uint32_t a, uint32_t b, uint32_t events) {
  if (a == b) return;
  grow(std::max(a, b) + 1);
  uint32_t& cell = cells_[index(a, b)];
  cell += std::min(events, UINT32_MAX - cell);
  cells_[index(b, a)] = cell;
}

void SharingMatrix::age() {
  // Down to 0: a quarter of 1, 2 and 3 is nothing, and a trace of what has ended would stay for ever.
  for (uint32_t& cell : cells_) cell -= (cell >> 2) + (cell < 4 && cell != 0 ? 1 : 0);
}

void SharingMatrix::forget(uint32_t thread) {
  if (thread >= threads_) return;
  for (uint32_t other = 0; other < threads_; ++other)
    cells_[index(thread, other)] = cells_[index(other, thread)] = 0;
}

void SharingMatrix::clear() { std::ranges::fill(cells_, 0); }

double heterogeneity(const SharingMatrix& matrix) {
  const double threads = matrix.threads();
  if (matrix.threads() == 0) return 0;
  double sum = 0;
  for (uint32_t i = 0; i < matrix.threads(); ++i) {
    double mean = 0;
    for (const uint32_t cell : matrix.row(i)) mean += cell;
    mean /= threads;
    for (const uint32_t cell : matrix.row(i)) sum += (mean - cell) * (mean - cell);
  }
  return sum / (threads * threads);
}

double sharing_amount(const SharingMatrix& matrix) {
  const double threads = matrix.threads();
  if (matrix.threads() == 0) return 0;
  double sum = 0;
  for (uint32_t i = 0; i < matrix.threads(); ++i)
    for (const uint32_t cell : matrix.row(i)) sum += cell;
  return sum / (threads * threads);
}

double correlation(const SharingMatrix& a, const SharingMatrix& b) {
  const uint32_t threads = std::max(a.threads(), b.threads());
  if (threads < 2) return 0;
  const auto value = [](const SharingMatrix& m, uint32_t i, uint32_t j) -> double {
    return j < m.threads() ? m.at(i, j) : 0;
  };
  const double pairs = threads * (threads - 1.0) / 2;
  double mean_a = 0;
  double mean_b = 0;
  for (uint32_t j = 1; j < threads; ++j)
    for (uint32_t i = 0; i < j; ++i) {
      mean_a += value(a, i, j);
      mean_b += value(b, i, j);
    }
  mean_a /= pairs;
  mean_b /= pairs;
  // In a second pass: the squares of large counts would swallow their differences.
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (uint32_t j = 1; j < threads; ++j)
    for (uint32_t i = 0; i < j; ++i) {
      const double from_a = value(a, i, j) - mean_a;
      const double from_b = value(b, i, j) - mean_b;
      aa += from_a * from_a;
      bb += from_b * from_b;
      ab += from_a * from_b;
    }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

}  // namespace bosk::affinity
