// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the options of `bosk run` mean as environment variables.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bosk::tools {

/// As given on the command line; "" or 0: not given.
struct RunOptions {
  std::string threads;
  std::string nested;
  std::string workers;
  std::string policy;
  std::string bind;
  std::string places;
  std::string wait;
  std::string preempt;
  std::string stack;
  std::string topology_xml;
  std::string synthetic;
  std::string report;
  std::string learn;
  std::string record;
  bool dry_run = false;
};

/// An option that cannot be meant (status 2), or something that is not there (125).
struct OptionError : std::runtime_error {
  OptionError(int exit_status, const std::string& line)
      : std::runtime_error(line), status(exit_status) {}
  int status;
};

/// Variables to set, in the order they are shown.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// Checks the options and translates them. Looks at the present environment where an option only fills
/// a gap. `library`: what the program will be run on. Throws OptionError.
Variables environment_for(const RunOptions& options, const std::string& library);

/// LD_PRELOAD with `libraries` before what is there.
std::string preload_with(const std::vector<std::string>& libraries);

}  // namespace bosk::tools
