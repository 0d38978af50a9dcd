// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Order statistics.
#include "bosk/compare/statistics.h"

#include <algorithm>

namespace bosk::tools {
namespace {

/// How many of the smallest, and of the largest, of `count` numbers lie outside of the interval. The true median is
/// below the k-th smallest with the probability that a fair coin shows heads in fewer than k of `count` throws.
size_t left_out_on_each_side(size_t count) {
  constexpr double kOutside = 0.1;
  double probability = 1;  // of exactly k heads
  for (size_t i = 0; i < count; ++i) probability /= 2;
  double below = 0;
  for (size_t k = 0; 2 * k < count; ++k) {
    below += probability;
    if (2 * below > kOutside) return k == 0 ? 0 : k - 1;
    probability *= static_cast<double>(count - k) / static_cast<double>(k + 1);
  }
  return 0;
}

}  // namespace

Estimate estimate(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t count = numbers.size();
  const size_t outside = left_out_on_each_side(count);
  return {(numbers[(count - 1) / 2] + numbers[count / 2]) / 2, numbers[outside],
          numbers[count - 1 - outside]};
}

}  // namespace bosk::tools
