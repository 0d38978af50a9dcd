// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Why a lab cannot be had: one line, and the tool's exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace bosk::tools::lab {

constexpr int kUsage = 2;      // options that cannot be meant
constexpr int kTimeOut = 124;  // as timeout(1) has it
constexpr int kFailure = 125;  // the lab itself

struct LabError : std::runtime_error {
  LabError(int exit_status, const std::string& line)
      : std::runtime_error(line), status(exit_status) {}
  int status;
};

}  // namespace bosk::tools::lab
