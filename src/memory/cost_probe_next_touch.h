// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures what marks for next-touch cost. Private to cost_probe*.cpp and tests.
#pragma once

#include <stddef.h>

#include "memory/costs.h"

namespace bosk::memory {

/// With pages of a node (the kernel's number), marked in groups of 1 to `most_pages` and touched in a row by the calling
/// thread, where it is. The windows adapt, as in programs. False, and `cost` is as it was: no memory, or no backend is allowed
/// here.
bool measure_next_touch(int kernel_node, size_t most_pages, NextTouchCost* cost);

}  // namespace bosk::memory
