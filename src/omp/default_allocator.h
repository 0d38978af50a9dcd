// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// def-allocator-var: a byte of the ICVs that stands for an allocator, so that regions copy no more than
// before.
#pragma once

#include <stdint.h>

#include "omp/allocator_traits.h"

namespace bosk::omp {

/// 0: what the environment says; 1 to 8: the predefined allocators; others: see number_of_allocator().
using AllocatorNumber = uint8_t;

/// The number that stands for the allocator until forget_allocator(). 0: 247 others have one now.
AllocatorNumber number_of_allocator(AllocatorHandle allocator);
/// kNullAllocator: it was forgotten since.
AllocatorHandle allocator_of_number(AllocatorNumber number);
void forget_allocator(AllocatorHandle allocator);

}  // namespace bosk::omp
