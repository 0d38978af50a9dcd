// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading, writing, remembering.
#include "bosk/lab/streams.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace bosk::tools::lab {

std::string read_some(int descriptor) {
  char buffer[32768];
  ssize_t got = 0;
  do {
    got = read(descriptor, buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : std::string();
}

void OutputStream::fill(int channel) {
  pending_ = read_some(channel);
  ended_ = pending_.empty();  // it was readable: QEMU is gone
}

bool OutputStream::empty_some() {
  // A pipe that poll() calls writable takes so much without blocking.
  const ssize_t written =
      write(sink_, pending_.data(), std::min<size_t>(pending_.size(), PIPE_BUF));
  if (written > 0) {
    pending_.erase(0, static_cast<size_t>(written));
    return true;
  }
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  pending_.clear();
  return false;
}

void OutputStream::flush(int channel) {
  for (;;) {
    if (pending_.empty()) pending_ = read_some(channel);
    if (pending_.empty()) return;
    pollfd file{sink_, POLLOUT, 0};
    if (poll(&file, 1, -1) < 0 && errno != EINTR) return;
    if (!empty_some()) return;
  }
}

void Tail::add(std::string_view text) {
  constexpr size_t kMost = 64 << 10;
  text_ += text;
  if (text_.size() > kMost) text_.erase(0, text_.size() - kMost / 2);
}

std::string Tail::last_lines(unsigned count) const {
  std::vector<std::string> lines(1);
  bool in_code = false;
  for (const char c : text_) {
    if (c == '\033') {
      in_code = true;
    } else if (in_code) {
      in_code = (c < '@' || c > '~' || c == '[');
    } else if (c == '\n') {
      lines.emplace_back();
    } else if (c >= ' ' || c == '\t') {
      lines.back() += c;
    }
  }
  lines.erase(std::remove(lines.begin(), lines.end(), std::string()), lines.end());
  const size_t first = lines.size() > count ? lines.size() - count : 0;
  std::string result;
  for (size_t i = first; i < lines.size(); ++i) {
    result += (result.empty() ? "  " : "\n  ") + lines[i];
  }
  return result;
}

std::string Tail::line_after(std::string_view mark) const {
  size_t start = text_.find(mark);
  start = start == std::string::npos ? 0 : start + mark.size();
  return text_.substr(start, text_.find_first_of("\r\n", start) - start);
}

}  // namespace bosk::tools::lab
