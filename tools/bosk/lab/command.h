// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Other programs that prepare a kernel: apt-get, dpkg-deb, tar, xz, make.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bosk::tools::lab {

struct CommandResult {
  int status = 0;      // as shells count it; 127: there is no such program
  std::string output;  // standard output and error, or the error alone if `out` is given
};

struct CommandOptions {
  std::filesystem::path directory;  // empty: this one
  std::filesystem::path in;         // standard input; empty: nothing
  std::filesystem::path out;        // a file for standard output; empty: CommandResult::output
  /// Called twice a second or so while it runs, with the output so far.
  std::function<void(const std::string&)> waiting;
};

/// While it lives, SIGINT, SIGTERM and SIGHUP make run_command() end its command and throw LabError, so
/// that what was begun is cleaned up.
class StopOnSignals {
 public:
  StopOnSignals();
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  void (*before_[3])(int);
};

/// Runs it to its end; it ends with us. Never throws for what the program does.
CommandResult run_command(const std::vector<std::string>& words,
                          const CommandOptions& options = {});

/// Is there such a program in PATH?
bool have_command(const std::string& name);

/// The line that says what went wrong: apt's first "E: …", else the last one.
std::string telling_line(const std::string& output);

/// SHA-256 of a file in hexadecimal; empty if it cannot be read.
std::string sha256_of(const std::filesystem::path& file);

}  // namespace bosk::tools::lab
