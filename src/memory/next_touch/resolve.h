// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ending marks: because somebody touches, because somebody cancels. All signals are blocked.
#pragma once

#include <stdint.h>

#include "memory/next_touch/region.h"

namespace bosk::memory {

/// A touch at `at`, told by `signal` (0: by userfaultfd's own messages), of a thread on node `target`.
/// False: it is not ours, or not any more. `*changes`: State::changes when that was looked up.
bool resolve_touch(uintptr_t at, int signal, uint32_t target, uint32_t* changes);

/// Ends the marks in [begin, end), chunk by chunk; data stay where they are. The gate is not held.
void cancel_marks(uintptr_t begin, uintptr_t end);

/// The same for a region, the gate held alone. False: some could not be ended for want of memory.
bool put_back_all(Region& region, uintptr_t begin, uintptr_t end);

/// Takes a region in which nothing is marked out of the table and forgets it. The gate is held alone.
void end_region(Region* region);

}  // namespace bosk::memory
