// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BOSK_NEXT_TOUCH: when memory is marked by itself. Apart from the other settings: one place asks.
#pragma once

namespace bosk::base {

/// BOSK_NEXT_TOUCH=regions. Reads the environment at the first call, as settings() does.
bool next_touch_regions();

}  // namespace bosk::base
