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

/// The first line in which two outputs differ; the lines escaped, shortened around the place.
struct Difference {
  uint64_t line = 0;
  std::string first;
  std::string second;
};

/// Reads both piece by piece. Nothing: they are the same.
std::optional<Difference> first_difference(const MemoryFile& first, const MemoryFile& second);

/// Up to `most` lines at the end, escaped, each shortened.
std::vector<std::string> last_lines(const MemoryFile& file, size_t most);

}  // namespace bosk::tools
