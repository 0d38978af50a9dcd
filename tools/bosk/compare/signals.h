// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The signals that end a comparison.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace bosk::tools {

/// While it lives, SIGINT and SIGTERM do not end the tool: they are noted, and handed on to the program that runs.
class EndingSignals {
 public:
  EndingSignals();
  ~EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  /// Waits for one of them, or for a child that ends, `seconds` at most. `child`: who is to get it, too; 0: nobody.
  void wait(double seconds, pid_t child);
  /// The first that came, also before wait(); 0: none.
  int received();
  /// In a child, before it becomes the program: as they were.
  void restore() const;

 private:
  sigset_t awaited_;
  sigset_t mask_before_;
  struct sigaction child_before_;
  int received_ = 0;
};

}  // namespace bosk::tools
