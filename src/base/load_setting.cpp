// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the value of BOSK_LOAD.
#include "base/load_setting.h"

#include "base/parse.h"

namespace bosk::base {
namespace {

bool take_from_to(TextReader* reader, uint64_t least, uint64_t most, uint32_t* value) {
  uint64_t number;
  if (!reader->take_unsigned(&number) || number < least || number > most) return false;
  *value = static_cast<uint32_t>(number);
  return true;
}

bool take_threads(TextReader* reader, LoadClause* clause) {
  clause->first = 0;
  clause->last = UINT32_MAX;
  if (reader->take('*')) return true;
  if (!take_from_to(reader, 0, UINT32_MAX, &clause->first)) return false;
  clause->last = clause->first;
  return !reader->take('-') || take_from_to(reader, clause->first, UINT32_MAX, &clause->last);
}

}  // namespace

bool parse_load_list(const char* text, LoadList* list) {
  constexpr uint32_t kMostLevels = 255;
  LoadList found{};
  TextReader reader(text);
  do {
    uint32_t level;
    if (!take_from_to(&reader, 1, kMostLevels, &level) || !reader.take(':')) return false;
    do {
      if (found.count == LoadList::kMost) return false;
      LoadClause& clause = found.clause[found.count++];
      clause.level = level;
      if (!take_threads(&reader, &clause) || !reader.take('=') ||
          !take_from_to(&reader, 1, UINT32_MAX - 1, &clause.load))
        return false;
    } while (reader.take(','));
  } while (reader.take(';'));
  if (!reader.at_end()) return false;
  *list = found;
  return true;
}

}  // namespace bosk::base
