// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finding the program to run, and seeing beforehand whether a preloaded library will reach it.
#pragma once

#include <stdexcept>
#include <string>

namespace bosk::tools {

/// Why a program cannot be run, with the exit status that shells give.
struct ProgramError : std::runtime_error {
  ProgramError(int exit_status, const std::string& line)
      : std::runtime_error(line), status(exit_status) {}
  int status;
};
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

/// The file that execvp(3) would run for `name`. Throws ProgramError.
std::string find_program(const std::string& name);

/// Throws ProgramError if the dynamic loader cannot or will not load our library into the program:
/// statically linked, another architecture, with privileges of its own, no program at all. A script
/// counts as its interpreter. Returns a line to be said, or "": the program needs an OpenMP library
/// that bosk does not stand for.
std::string check_program(const std::string& path);

}  // namespace bosk::tools
