// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A fork finds nothing marked: the child of one that does would read zeros.
#pragma once

namespace bosk::memory {

/// Once, before the first mark. Preemption is on.
void install_fork_hooks();

}  // namespace bosk::memory
