// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a comparison says: from the numbers of the runs to sentences and a table. Runs nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bosk/compare/output.h"

namespace bosk::tools {

/// One run of one variant.
struct MeasuredRun {
  double wall_seconds = 0;
  double cpu_seconds = 0;
  double peak_mib = 0;
  /// As wait(2) has it.
  int wait_status = 0;
  /// How its standard output differs from that of the first run of its own variant, of its reference, of the first variant.
  Differences from_own_first;
  Differences from_reference;
  Differences from_first_variant;
};

/// All runs of one variant: its i-th was in the i-th round.
struct VariantRuns {
  /// As it is printed.
  std::string name;
  /// Which variant, on libgomp, it is compared with; its own number: it is one.
  size_t reference = 0;
  std::vector<MeasuredRun> runs;
  /// Of the first run that failed.
  std::vector<std::string> last_errors;
};

/// Verdict, table, exit status and output. Every variant has had the same number of runs, at least one.
std::string comparison_text(const std::vector<VariantRuns>& variants);

/// The exit status that all runs had (128 + n for the signal n), or 1 if they had not the same.
int common_status(const std::vector<VariantRuns>& variants);

}  // namespace bosk::tools
