// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BOSK_COUNTERS: are the caches' counters read whenever a thread of the program's own is switched to or away from? Apart from the
// other settings: those threads' home asks.
#pragma once

namespace bosk::base {

/// Reads the environment at the first call, as settings() does.
bool counters_wanted();

}  // namespace bosk::base
