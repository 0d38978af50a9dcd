// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes over its own line.
#include "bosk/compare/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "bosk/compare/process.h"
#include "bosk/escaped.h"

namespace bosk::tools {

constexpr double kPatienceSeconds = 2;

Progress::Progress(size_t runs)
    : runs_(runs), on_terminal_(isatty(STDERR_FILENO) != 0), began_(monotonic_seconds()) {}

Progress::~Progress() {
  if (width_ != 0) write_over("");
}

void Progress::show(const std::string& variant, double seconds) {
  if (monotonic_seconds() - began_ < kPatienceSeconds) return;
  if (on_terminal_) {
    return write_over(
        fmt::format("run {} of {}: {}, {:.1f} s so far", run_, runs_, variant, seconds));
  }
  if (!said_) fmt::print(stderr, "bosk: comparing; {} runs in all\n", runs_);
  said_ = true;
}

void Progress::write_over(const std::string& line) {
  // Blanks, which any terminal knows, over what was longer.
  const size_t width = width_of_text(line);
  const std::string blanks(width_ > width ? width_ - width : 0, ' ');
  std::fputs(("\r" + line + blanks + (line.empty() ? "\r" : "")).c_str(), stderr);
  std::fflush(stderr);
  width_ = width;
}

}  // namespace bosk::tools
