// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a topology function tells why it failed: one line of text, owned by the caller.
#pragma once

namespace bosk::topology {

/// One clear line: names the thing and what to do. Without the "bosk: " prefix and the newline, which
/// base::say() adds: `base::say("%s", error.text)`. Empty when nothing went wrong.
struct Error {
  char text[480] = {};

  /// Formats the line (cut at the end of `text`). Returns false, so that a failing function can
  /// `return error->set(...)`. Safe on any thread that owns the Error; allocates nothing.
  [[gnu::format(printf, 2, 3)]] bool set(const char* format, ...);
};

}  // namespace bosk::topology
