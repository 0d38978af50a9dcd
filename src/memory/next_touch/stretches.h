// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What of a large range that is mostly empty is worth a mark: where something is. Each stretch becomes a region, which costs
// some microseconds and some mappings, so gaps between them are large, and there are not too many. To find out takes twice what
// marking takes, for each page that is there.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/pages.h"
#include "memory/next_touch/next_touch.h"
#include "memory/present_pages.h"

namespace bosk::memory {

/// Large, and less than half of it is there, by a sample. Of everything else all is marked.
bool is_sparse(uintptr_t begin, uintptr_t end);

/// How many absent pages may lie between two that are there, and both be in one stretch: the fewest with which there are
/// not too many stretches.
size_t gap_between_stretches(uintptr_t begin, uintptr_t end);

/// Calls `visit(begin, end)` for the stretches of a part of a range; ends with the first error, and returns it.
template <typename Visit>
int for_stretches(uintptr_t begin, uintptr_t end, bool sparse, Visit visit) {
  if (!sparse) return visit(begin, end);
  PresentLook look;
  look.gap = gap_between_stretches(begin, end);
  look.worth_a_look = 0;
  PresentRuns runs(begin, (end - begin) / base::kPage, look);
  for (PageRun run; runs.next(&run);) {
    const uintptr_t from = begin + run.first * base::kPage;
    if (const int error = visit(from, from + run.count * base::kPage); error != kNextTouchOk)
      return error;
  }
  return kNextTouchOk;
}

}  // namespace bosk::memory
