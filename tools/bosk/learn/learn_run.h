// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk run --learn`: an observer beside the program, and the page when it has ended.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bosk/beside.h"
#include "bosk/run_environment.h"

namespace bosk::tools {

class Learning;

/// The library that a program is observed by, beside the one it runs on. Throws OptionError if it is not there.
std::string observed_library(const std::string& library);

class LearnRun {
 public:
  /// Does nothing where learning is off, and says so. `words`: the program and its arguments, for heads. Throws OptionError: options that cannot be meant, a file that cannot be written, no socket.
  LearnRun(const RunOptions& options, const std::vector<std::string>& words);
  ~LearnRun();
  LearnRun(const LearnRun&) = delete;
  LearnRun& operator=(const LearnRun&) = delete;

  /// What the program's environment must have.
  Variables variables() const;
  /// For run_beside(). This object must live longer.
  Companion companion();
  /// When the program has ended.
  nlohmann::ordered_json learnt();

 private:
  std::string program_;
  std::string off_;
  std::unique_ptr<Learning> learning_;  ///< null: it is off
};

/// Why observing would be of no use: nothing is to be kept or shown, only moved, and on this machine it is the same where threads run and memory lies. Empty: it is of use, or is
/// wanted all the same (BOSK_LEARN=force).
std::string why_learning_is_off(const RunOptions& options);

/// Are the options of --learn such as can be meant? Throws OptionError.
void check_learn_options(const RunOptions& options);

}  // namespace bosk::tools
