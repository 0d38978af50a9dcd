// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One guest: started, given its job, listened to, ended.
#pragma once

#include <string>
#include <vector>

#include "bosk/lab/qemu_command.h"

namespace bosk::tools::lab {

/// What the guest is to run.
struct Job {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value
  std::string directory;
  bool terminal = false;  // give it a terminal instead of pipes
  bool root = false;      // as root, not as the caller
};

struct SessionOptions {
  double timeout = 0;    // seconds for all of it; 0: none but for the start
  bool verbose = false;  // the guest's console, and times, on standard error
  /// Let QEMU end by itself, so that a plug-in can write what it has found.
  bool orderly_end = false;
};

/// Runs the guest; returns what the tool exits with: the program's status, or 128 and the number of the
/// signal that ended us. Throws LabError for what is the lab's own failure.
int run_session(const QemuCommand& command, const Job& job, const SessionOptions& options);

}  // namespace bosk::tools::lab
