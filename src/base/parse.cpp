// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words and numbers of environment variables.
#include "base/parse.h"

namespace bosk::base {

char TextReader::peek() {
  while (is_blank(*at_)) ++at_;
  return *at_;
}

bool TextReader::take(char c) {
  if (c == '\0' || peek() != c) return false;
  ++at_;
  return true;
}

bool TextReader::take_word(const char* word) {
  peek();
  const char* at = at_;
  for (; *word != '\0'; ++word, ++at) {
    if (to_lower(*at) != to_lower(*word)) return false;
  }
  if (is_word_char(*at)) return false;
  at_ = at;
  return true;
}

bool TextReader::take_digits(uint64_t* value) {
  const char* at = at_;
  if (!is_digit(*at)) return false;
  uint64_t sum = 0;
  for (; is_digit(*at); ++at) {
    if (__builtin_mul_overflow(sum, 10u, &sum) ||
        __builtin_add_overflow(sum, static_cast<unsigned>(*at - '0'), &sum)) {
      return false;
    }
  }
  *value = sum;
  at_ = at;
  return true;
}

bool TextReader::take_unsigned(uint64_t* value) {
  TextReader ahead = *this;
  ahead.peek();
  if (*ahead.at_ == '+') ++ahead.at_;
  if (!ahead.take_digits(value)) return false;
  *this = ahead;
  return true;
}

bool TextReader::take_signed(int64_t* value) {
  TextReader ahead = *this;
  const bool negative = ahead.take('-');
  uint64_t magnitude;
  if (negative ? !ahead.take_digits(&magnitude) : !ahead.take_unsigned(&magnitude)) return false;
  const uint64_t most = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (magnitude > most) return false;
  *value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  *this = ahead;
  return true;
}

bool parse_choice(const char* text, const char* if_true, const char* if_false, bool* value) {
  const char* const words[] = {if_false, if_true};
  const int which = parse_word(text, words, 2);
  if (which >= 0) *value = which != 0;
  return which >= 0;
}

bool parse_number(const char* text, uint64_t least, uint64_t most, uint64_t* value) {
  TextReader reader(text);
  uint64_t number;
  if (!reader.take_unsigned(&number) || !reader.at_end()) return false;
  if (number < least || number > most) return false;
  *value = number;
  return true;
}

int parse_word(const char* text, const char* const* words, int count) {
  for (int i = 0; i < count; i++) {
    TextReader reader(text);
    if (reader.take_word(words[i]) && reader.at_end()) return i;
  }
  return -1;
}

}  // namespace bosk::base
