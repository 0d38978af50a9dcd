// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages that are collected first and told later: threads may race to read the environment, and
// only the one whose result is kept tells what was wrong with it.
#pragma once

#include "base/mapped_array.h"

namespace bosk::base {

/// Writes `length` bytes to standard error, if possible in one go. Leaves errno as it was.
void write_error_text(const char* text, size_t length);

class MessageLog {
 public:
  /// Notes one line (at most some 900 characters are kept). Without memory the line is lost.
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...);
  /// The lines, each ended by a NUL; the last one by two.
  const char* lines() const { return text_.empty() ? "" : text_.data(); }
  bool empty() const { return text_.empty(); }
  /// Tells every line through `tell` (say or gomp_error take "%s" and the line), and forgets them.
  void tell_and_release(void (*tell)(const char* format, ...));
  void release() { text_.release(); }

 private:
  MappedArray<char> text_;
};

}  // namespace bosk::base
