// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/write_text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

namespace bosk::tools {

int write_text(const std::string& name, const std::string& text) {
  if (name.empty()) return 0;
  if (name == "-") {
    fmt::print("{}", text);
    return 0;
  }
  std::FILE* file = std::fopen(name.c_str(), "we");
  if (file == nullptr) return errno;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = is_written ? 0 : errno;
  return std::fclose(file) == 0 ? error : errno;
}

}  // namespace bosk::tools
