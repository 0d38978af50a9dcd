// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP's memory allocators over malloc. All memory spaces are the one that malloc serves.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::omp {

/// omp_allocator_handle_t: one of the predefined ones, or the address of an Allocator.
using AllocatorHandle = uintptr_t;

constexpr AllocatorHandle kNullAllocator = 0;
constexpr AllocatorHandle kDefaultMemAlloc = 1;
/// Numbers below this one are for predefined allocators; no address is that low.
constexpr AllocatorHandle kFirstAddress = 201;

/// omp_alloctrait_t.
struct AllocatorTrait {
  int32_t key;
  uintptr_t value;
};
static_assert(sizeof(AllocatorTrait) == 2 * sizeof(uintptr_t));

/// omp_init_allocator; kNullAllocator: a trait is wrong or cannot be had.
AllocatorHandle make_allocator(uintptr_t memory_space, int64_t n_traits,
                               const AllocatorTrait* traits);
/// Its memory must have been freed. The predefined ones stay.
void destroy_allocator(AllocatorHandle allocator);

/// def-allocator-var; kNullAllocator sets it back to kDefaultMemAlloc.
AllocatorHandle default_allocator();
void set_default_allocator(AllocatorHandle allocator);

/// `size` bytes, aligned to `alignment` (0: what the allocator says) and at least to 16; zeroed on
/// request. kNullAllocator means the default one. Null: size is 0, alignment is no power of two, or
/// there is no memory and the allocator's fallback says so.
void* allocate(size_t size, size_t alignment, AllocatorHandle allocator, bool zeroed);

/// allocate() for count elements; an overflow counts as no memory.
void* allocate_array(size_t count, size_t size, size_t alignment, AllocatorHandle allocator);

/// The block knows its allocator. Null is fine.
void release(void* block);

/// omp_realloc: the content moves if need be; on failure the old block stays. kNullAllocator: the
/// block's own allocator.
void* reallocate(void* block, size_t size, AllocatorHandle allocator);

}  // namespace bosk::omp
