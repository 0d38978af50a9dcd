// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Medians, and how sure they are.
#pragma once

#include <vector>

namespace bosk::tools {

/// Of this many numbers on, all of them together hold the true median with 90 % confidence.
constexpr int kEnoughRuns = 5;

/// A median, and between what it lies with at least 90 % confidence; of fewer than kEnoughRuns numbers: between all of
/// them.
struct Estimate {
  double median = 0;
  double least = 0;
  double most = 0;
};

/// By order statistics: nothing is supposed of how the numbers are distributed. At least one number.
Estimate estimate(std::vector<double> numbers);

}  // namespace bosk::tools
