// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Quotes words for a shell.
#include "show_command.h"

#include <fmt/format.h>

namespace bosk::tools {
namespace {

/// For a shell to read again.
std::string for_shell(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

}  // namespace

void show_command(const Variables& variables, const std::string& program,
                  const std::vector<std::string>& command) {
  for (const auto& [name, value] : variables) fmt::print("{}={} \\\n", name, for_shell(value));
  fmt::print("  {}", for_shell(program));
  for (size_t i = 1; i < command.size(); ++i) fmt::print(" {}", for_shell(command[i]));
  fmt::print("\n");
}

}  // namespace bosk::tools
