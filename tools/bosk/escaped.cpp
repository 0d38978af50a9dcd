// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tells UTF-8 from other bytes.
#include "escaped.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace bosk::tools {
namespace {

bool continues_character(char c) { return (c & 0xc0) == 0x80; }

/// How many bytes the character at the front has, and its number; 0: that is not UTF-8.
size_t take_character(std::string_view text, uint32_t* number) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) {
    *number = first;
    return 1;
  }
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  *number = first & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!continues_character(text[i])) return 0;
    *number = *number << 6 | (text[i] & 0x3f);
  }
  // Longer than need be, half of a pair of UTF-16, or beyond the last one.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = *number >= 0xd800 && *number < 0xe000;
  return *number < kLeast[bytes] || surrogate || *number > 0x10ffff ? 0 : bytes;
}

/// Control characters, and those that turn the direction of what follows.
bool is_obeyed(uint32_t number) {
  return number < 0x20 || (number >= 0x7f && number < 0xa0) ||
         (number >= 0x200e && number <= 0x200f) || (number >= 0x2028 && number <= 0x202e) ||
         (number >= 0x2066 && number <= 0x2069);
}

std::string escaped_bytes(std::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  if (bytes == "\r") return "\\r";
  std::string result;
  for (const char c : bytes) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    uint32_t number = 0;
    const size_t bytes = take_character(text, &number);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0 || is_obeyed(number)) {
      result += escaped_bytes(character);
    } else if (character == "\\") {
      result += "\\\\";
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

size_t width_of_text(std::string_view text) {
  return text.size() -
         static_cast<size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

std::string shortened(const std::string& text, size_t most) {
  if (width_of_text(text) <= most) return text;
  size_t end = 0;
  for (size_t left = most; left > 0; --left) {
    do {
      ++end;
    } while (end < text.size() && continues_character(text[end]));
    if (left == 2) break;  // the last place is the ellipsis's
  }
  return text.substr(0, end) + "…";
}

}  // namespace bosk::tools
