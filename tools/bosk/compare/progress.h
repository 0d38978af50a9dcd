// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far a comparison is, on standard error.
#pragma once

#include <cstddef>
#include <string>

namespace bosk::tools {

/// Silent for the first two seconds. Then, on a terminal, one line that is written again and again and erased at the
/// end; otherwise one line in all.
class Progress {
 public:
  /// `runs`: how many there will be.
  explicit Progress(size_t runs);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void next_run() { run_++; }
  /// Of the present run.
  void show(const std::string& variant, double seconds);

 private:
  void write_over(const std::string& line);

  size_t runs_;
  size_t run_ = 0;
  size_t width_ = 0;
  bool said_ = false;
  bool on_terminal_;
  double began_;
};

}  // namespace bosk::tools
