// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Making and changing regions. The gate is held alone, all signals are blocked.
#pragma once

#include <stdint.h>

#include "memory/next_touch/backend.h"

namespace bosk::memory {

/// What a mark may choose from.
struct Choice {
  NextTouchOptions options;
  const Backend* preferred;
  const Backend* for_files;  ///< where `preferred` does not take the mapping; null: refuse
};

/// Marks whole pages; a NextTouchError.
int mark_pages(uintptr_t begin, uintptr_t end, const Choice& choice);

/// Would they be refused? Changes nothing. `any_policy`: whatever mbind(2) has said.
int check_pages(uintptr_t begin, uintptr_t end, const Choice& choice, bool any_policy);

}  // namespace bosk::memory
