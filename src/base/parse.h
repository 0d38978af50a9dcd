// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads words and numbers from left to right: the tokens of every environment variable.
#pragma once

#include <stdint.h>

namespace bosk::base {

// The C locale's answers whatever the program's locale is: isspace() and strtoul() look at TLS of
// libc, and a locale must not change what an environment variable means.
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
constexpr bool is_word_char(char c) {
  const char l = to_lower(c);
  return is_digit(c) || (l >= 'a' && l <= 'z') || c == '_';
}

/// A position in a text. Every take_* skips blanks first, and moves only if it finds what it looks
/// for. Copy a reader to look ahead.
class TextReader {
 public:
  explicit constexpr TextReader(const char* text) : at_(text) {}

  /// The next character that is no blank; 0 at the end.
  char peek();
  /// Only blanks are left?
  bool at_end() { return peek() == '\0'; }
  bool take(char c);
  /// `word` as a whole word, in any case: "truefalse" is not "true".
  bool take_word(const char* word);
  /// A decimal number; a leading '+' is allowed. False also if it does not fit.
  bool take_unsigned(uint64_t* value);
  bool take_signed(int64_t* value);
  /// Without skipping blanks first.
  bool take_digits(uint64_t* value);
  const char* position() const { return at_; }

 private:
  const char* at_;
};

/// `text` is one of two words and nothing else.
bool parse_choice(const char* text, const char* if_true, const char* if_false, bool* value);

/// `text` is one unsigned number from `least` to `most` and nothing else.
bool parse_number(const char* text, uint64_t least, uint64_t most, uint64_t* value);

/// Which of `count` words `text` is (any case, blanks around it allowed); -1: none of them.
int parse_word(const char* text, const char* const* words, int count);

}  // namespace bosk::base
