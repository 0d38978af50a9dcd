// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP's memory allocators: malloc where nothing special is asked, else pages of their own
// (docs/openmp.md).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "omp/allocator_traits.h"

namespace bosk::omp {

/// omp_init_allocator; kNullAllocator: a trait is wrong. What cannot be had shows when memory is asked
/// for: the fallback is for that.
AllocatorHandle make_allocator(uintptr_t memory_space, int64_t n_traits,
                               const AllocatorTrait* traits);
/// Its memory must have been freed. The predefined ones and the environment's stay.
void destroy_allocator(AllocatorHandle allocator);

/// def-allocator-var of the calling thread's implicit task; kNullAllocator sets it to kDefaultMemAlloc.
AllocatorHandle default_allocator();
void set_default_allocator(AllocatorHandle allocator);

/// `size` bytes, aligned to `alignment` (0: what the allocator says) and at least to 16; zeroed on
/// request. kNullAllocator means the default one. Null: size is 0, alignment is no power of two, or
/// the memory cannot be had as the traits ask and the allocator's fallback says so.
void* allocate(size_t size, size_t alignment, AllocatorHandle allocator, bool zeroed);

/// allocate() for count elements; an overflow counts as no memory.
void* allocate_array(size_t count, size_t size, size_t alignment, AllocatorHandle allocator);

/// The block knows its allocator. Null is fine.
void release(void* block);

/// omp_realloc: the content moves if need be; on failure the old block stays. kNullAllocator: the
/// block's own allocator.
void* reallocate(void* block, size_t size, AllocatorHandle allocator);

}  // namespace bosk::omp
