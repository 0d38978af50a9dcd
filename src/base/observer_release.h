// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace bosk::base {

/// To be called before this process makes a userfaultfd, its own or ours: the kernel lets one have a piece of memory, and `bosk run --learn` has it if that
/// observes us. It lets go of all, for good; we wait for that, a second at most. Nothing where nobody observes. Reads the environment.
void release_from_observer();

}  // namespace bosk::base
