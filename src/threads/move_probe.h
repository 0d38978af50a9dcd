// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures what it takes to move threads (2009, section 3.3, footnote 2).
#pragma once

#include "memory/costs.h"

namespace bosk::threads {

/// Light threads are put on another node (on another PU, if there is no other node) in groups of 1 to 256: the time until all
/// of them have run there is a line. Making them is in it, what they would find in caches is not. Makes the home and its workers,
/// which stay as after any use of them: best called by a process of its own. `quick`: fewer rounds. Preemption is on. False: there
/// is one PU, or no memory or threads, or others had all PUs.
bool measure_thread_move(bool quick, memory::ThreadMoveCost* cost);

}  // namespace bosk::threads
