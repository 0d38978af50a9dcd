// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the variants of a comparison in turn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bosk/compare/process.h"
#include "bosk/compare/text.h"

namespace bosk::tools {

/// One column of the comparison, before it is run.
struct Variant {
  /// As it is printed.
  std::string name;
  /// Which variant, on libgomp, it is compared with; its own number: it is one. Not above its own number.
  size_t reference = 0;
  Launch launch;
};

struct Compared {
  /// Of all rounds that were finished.
  std::vector<VariantRuns> variants;
  size_t rounds = 0;
  /// The signal that ended it early; 0: none.
  int signal = 0;
};

/// In each round every variant once, every other round in reverse order. Says on standard error how far it is if that
/// takes longer than people wait. Throws ProgramError and std::system_error.
Compared run_in_turn(const std::vector<Variant>& variants, size_t rounds,
                     const RepeatedInput& input, EndingSignals* signals);

}  // namespace bosk::tools
