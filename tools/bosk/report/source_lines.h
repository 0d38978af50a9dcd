// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lines of the source, from the debug information of programs and libraries. Read by elfutils (libdw), which is opened when it is first
// needed: without it, or without debug information, nothing is known.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bosk::tools {

class SourceLines {
 public:
  SourceLines();
  ~SourceLines();
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

  /// "solve.c:42", of the code that is loaded `offset` bytes behind the beginning of `file`; empty: not known.
  std::string find(const std::string& file, uint64_t offset);

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace bosk::tools
