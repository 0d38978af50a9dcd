// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Our terminal as the guest's: every key goes there.
#pragma once

#include <termios.h>
#include <unistd.h>

namespace bosk::tools::lab {

class RawTerminal {
 public:
  RawTerminal() = default;
  ~RawTerminal() { restore(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  /// Does nothing where standard input is no terminal.
  void make_raw() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    cfmakeraw(&raw);
    raw_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  void restore() {
    if (raw_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
    raw_ = false;
  }

 private:
  termios before_{};
  bool raw_ = false;
};

}  // namespace bosk::tools::lab
