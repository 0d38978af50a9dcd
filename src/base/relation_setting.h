// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BOSK_RELATION: what the members of the teams of a nesting level have to do with each other.
#pragma once

#include <stdint.h>

namespace bosk::base {

/// In the order of sched::Relation.
constexpr const char* kRelationNames[] = {"none", "data-sharing", "collective",           "smt",
                                          "gang", "sequence",     "memory-beside-compute"};
constexpr uint32_t kRelationNameCount = sizeof kRelationNames / sizeof *kRelationNames;

struct RelationList {
  static constexpr uint32_t kMost = 16;
  struct Clause {
    uint32_t level;  ///< 1: outermost
    uint8_t relation;
  };
  Clause clause[kMost];
  uint32_t count;  ///< 0: not given

  /// Of several the last one counts. 0, which is "none", if nothing is said of the level.
  uint8_t of_level(uint32_t level) const {
    for (uint32_t i = count; i-- > 0;)
      if (clause[i].level == level) return clause[i].relation;
    return 0;
  }
};

/// `LEVEL:RELATION{;LEVEL:RELATION}`. False, and nothing changed, if the text is anything else.
bool parse_relation_list(const char* text, RelationList* list);

}  // namespace bosk::base
