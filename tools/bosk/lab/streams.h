// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes on their way: the program's output, and the end of what a console said.
#pragma once

#include <string>
#include <string_view>

namespace bosk::tools::lab {

/// What a descriptor that does not block has now; empty: nothing, or it has ended.
std::string read_some(int descriptor);

/// From a channel to one of our standard files, which may be slow or block: nothing more is read while
/// something waits to be written, so that a slow reader slows the program down, as a pipe would.
class OutputStream {
 public:
  explicit OutputStream(int sink) : sink_(sink) {}
  /// What to poll: the channel when there is room, the file when there is something for it.
  int source_to_poll(int channel) const { return pending_.empty() && !ended_ ? channel : -1; }
  int sink_to_poll() const { return pending_.empty() ? -1 : sink_; }
  void fill(int channel);
  /// Writes what surely does not block. False: nobody reads us any more.
  bool empty_some();
  /// Passes on all that the channel has.
  void flush(int channel);

 private:
  int sink_;
  bool ended_ = false;
  std::string pending_;
};

/// The last kilobytes of a text.
class Tail {
 public:
  void add(std::string_view text);
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  /// Without carriage returns and terminals' codes, each line indented.
  std::string last_lines(unsigned count) const;
  /// What follows `mark` on the first line that has it; all of the first line if none has.
  std::string line_after(std::string_view mark) const;

 private:
  std::string text_;
};

}  // namespace bosk::tools::lab
