// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the value of BOSK_RELATION.
#include "base/relation_setting.h"

#include "base/parse.h"

namespace bosk::base {

namespace {

/// Members of a team may meet in barriers, so none can await the end of another.
constexpr uint8_t kSequence = 5;

bool take_relation(TextReader* reader, uint8_t* relation) {
  for (uint8_t i = 0; i < kRelationNameCount; ++i)
    if (i != kSequence && reader->take_word(kRelationNames[i])) {
      *relation = i;
      return true;
    }
  return false;
}

}  // namespace

bool parse_relation_list(const char* text, RelationList* list) {
  constexpr uint64_t kMostLevels = 255;
  RelationList found{};
  TextReader reader(text);
  do {
    uint64_t level;
    uint8_t relation;
    if (found.count == RelationList::kMost || !reader.take_unsigned(&level) || level == 0 ||
        level > kMostLevels || !reader.take(':') || !take_relation(&reader, &relation))
      return false;
    found.clause[found.count++] = {static_cast<uint32_t>(level), relation};
  } while (reader.take(';'));
  if (!reader.at_end()) return false;
  *list = found;
  return true;
}

}  // namespace bosk::base
