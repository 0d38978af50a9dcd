// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The thread that resolves where the toucher may be in a system call and cannot do it itself.
#pragma once

namespace bosk::memory {

/// Makes the thread that reads faults from `file`. False: no thread to be had.
bool start_userfault_thread(int file);

}  // namespace bosk::memory
