// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What programs wrote: where two outputs part, and how one ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bosk/memory_file.h"

namespace bosk::tools {

/// A line in which two outputs differ; as both have it, escaped, shortened around the place.
struct Difference {
  uint64_t line = 0;
  std::string first;
  std::string second;
};

/// Where two outputs differ, line by line.
struct Differences {
  static constexpr size_t kMost = 1000;

  /// The first of them, in order.
  std::vector<Difference> lines;
  /// Beyond these nothing is known: there are more, or one output ends before the other.
  bool has_more = false;

  bool none() const { return lines.empty(); }
};

/// Reads both piece by piece.
Differences differences(const MemoryFile& first, const MemoryFile& second);

/// Up to `most` lines at the end, escaped, each shortened.
std::vector<std::string> last_lines(const MemoryFile& file, size_t most);

}  // namespace bosk::tools
