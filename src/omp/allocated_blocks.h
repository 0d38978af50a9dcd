// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The blocks that Fortran's allocators directive had made: their deallocation must tell them from those
// that malloc made, and compiled code asks us.
#pragma once

namespace bosk::omp {

void remember_block(void* block);
/// Whether it was remembered; it no longer is.
bool forget_block(void* block);

/// In a forked child: nobody holds the lock.
void allocated_blocks_forget_after_fork();

}  // namespace bosk::omp
