// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BOSK_LOAD: what each member of the teams of a nesting level has to do.
#pragma once

#include <stdint.h>

namespace bosk::base {

/// Threads first … last of the teams at nesting level `level` (1: outermost) have `load`.
struct LoadClause {
  uint32_t level;
  uint32_t first;
  uint32_t last;
  uint32_t load;
};

/// In the order of the text; where several hold for a thread, the last one counts.
struct LoadList {
  static constexpr uint32_t kMost = 64;
  LoadClause clause[kMost];
  uint32_t count;  ///< 0: not given

  /// UINT32_MAX: nothing is said of it.
  uint32_t load_of(uint32_t level, uint32_t thread) const {
    for (uint32_t i = count; i-- > 0;)
      if (clause[i].level == level && thread >= clause[i].first && thread <= clause[i].last)
        return clause[i].load;
    return UINT32_MAX;
  }
  bool mentions(uint32_t level) const {
    for (uint32_t i = 0; i < count; ++i)
      if (clause[i].level == level) return true;
    return false;
  }
};

/// `LEVEL:THREADS=LOAD{,THREADS=LOAD}{;LEVEL:…}`; THREADS is n, n-m or *, loads are from 1 to 4294967294.
/// False, and nothing changed, if the text is anything else.
bool parse_load_list(const char* text, LoadList* list);

}  // namespace bosk::base
