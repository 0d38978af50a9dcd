// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a program once and measures it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bosk/compare/signals.h"
#include "bosk/memory_file.h"
#include "bosk/run_environment.h"

namespace bosk::tools {

/// Standard input that every run reads from where it began: a file at its present offset, what a pipe held, or
/// nothing of a terminal.
class RepeatedInput {
 public:
  /// Looks at descriptor 0, and reads a pipe to its end. Throws std::system_error.
  RepeatedInput();
  /// Opened anew; the caller closes it. Throws std::system_error.
  int open() const;

 private:
  std::optional<MemoryFile> contents_;
  std::string path_;
  off_t offset_ = 0;
};

/// What is run, and as what.
struct Launch {
  std::string program;
  std::vector<std::string> command;
  /// Besides the environment of the tool.
  Variables variables;
};

/// What came of one run.
struct Finished {
  double wall_seconds = 0;
  double cpu_seconds = 0;
  double peak_mib = 0;
  int wait_status = 0;
  MemoryFile output;
  MemoryFile errors;
};

/// `tick` is called now and then while it runs, with the seconds so far. Throws ProgramError if it cannot be executed.
Finished run_once(const Launch& launch, const RepeatedInput& input, EndingSignals* signals,
                  const std::function<void(double)>& tick);

/// By a clock that nobody sets.
double monotonic_seconds();

}  // namespace bosk::tools
