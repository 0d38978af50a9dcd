// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the text of BOSK_POLICY.
#include <string.h>

#include "base/mapped_array.h"
#include "base/parse.h"
#include "base/settings.h"

namespace bosk::base {
namespace {

bool is_policy_char(char c) { return is_word_char(c) || c == '-'; }
bool ends_part(char c) { return c == '\0' || c == ',' || c == ':' || c == '@'; }

bool take_word(TextReader* reader, char* word) {
  reader->peek();
  const char* at = reader->position();
  uint32_t length = 0;
  while (is_policy_char(at[length])) ++length;
  if (length == 0 || length > PolicyClause::kWordMax) return false;
  memcpy(word, at, length);
  word[length] = '\0';
  *reader = TextReader(at + length);
  return true;
}

/// Everything up to one of `,` `:` `@` (an argument may hold `:`), without the blanks around it. A
/// backslash takes the next character as it is. Returns the length, 0 if there is nothing or it does
/// not fit.
uint32_t take_text(TextReader* reader, char* text, uint32_t room, bool colon_ends) {
  reader->peek();
  const char* at = reader->position();
  uint32_t length = 0;
  uint32_t trimmed = 0;
  for (; !ends_part(*at) || (*at == ':' && !colon_ends); ++at) {
    const bool quoted = *at == '\\' && at[1] != '\0';
    if (quoted) ++at;
    if (length + 1 == room) return 0;
    text[length++] = *at;
    if (quoted || !is_blank(*at)) trimmed = length;
  }
  text[trimmed] = '\0';
  *reader = TextReader(at);
  return trimmed;
}

/// Does the clause name a file, not a word?
bool names_file(TextReader reader) {
  reader.peek();
  const char* at = reader.position();
  uint32_t length = 0;
  while (!ends_part(at[length])) {
    if (at[length] == '/' || at[length] == '\\') return true;
    ++length;
  }
  while (length != 0 && is_blank(at[length - 1])) --length;
  return length > 3 && memcmp(at + length - 3, ".so", 3) == 0;
}

bool take_plugin(TextReader* reader, PolicyClause* clause) {
  char path[PolicyClause::kPathMax + 1];
  const uint32_t length = take_text(reader, path, sizeof path, true);
  if (length == 0) return false;
  if (reader->take(':') && take_text(reader, clause->argument, sizeof clause->argument, false) == 0)
    return false;
  clause->plugin = keep_text(path, length);
  return clause->plugin != nullptr;
}

bool take_clause(TextReader* reader, PolicyClause* clause) {
  if (names_file(*reader)) {
    if (!take_plugin(reader, clause)) return false;
  } else {
    if (!take_word(reader, clause->name)) return false;
    if (reader->take(':') && !take_word(reader, clause->argument)) return false;
  }
  return !reader->take('@') || take_word(reader, clause->level);
}

bool read_list(const char* text, PolicyList* list) {
  TextReader reader(text);
  do {
    if (list->count == PolicyList::kMost) return false;
    if (!take_clause(&reader, &list->clause[list->count++])) return false;
  } while (reader.take(','));
  return reader.at_end();
}

}  // namespace

void release_policy_list(PolicyList* list) {
  for (PolicyClause& clause : list->clause) {
    if (clause.plugin != nullptr)
      unmap_pages(const_cast<char*>(clause.plugin), strlen(clause.plugin) + 1);
    clause.plugin = nullptr;
  }
}

bool parse_policy_list(const char* text, PolicyList* list) {
  PolicyList found{};
  if (!read_list(text, &found)) {
    release_policy_list(&found);
    return false;
  }
  *list = found;
  return true;
}

}  // namespace bosk::base
