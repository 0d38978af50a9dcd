// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// omp_alloc and its relatives, GOMP_alloc and GOMP_free.
#include "abi/gomp/export.h"
#include "base/message.h"
#include "omp/allocated_blocks.h"
#include "omp/allocator.h"

using namespace bosk::omp;

BOSK_EXPORT AllocatorHandle omp_init_allocator(uintptr_t memory_space, int n_traits,
                                               const AllocatorTrait* traits) {
  return make_allocator(memory_space, n_traits, traits);
}
BOSK_EXPORT AllocatorHandle omp_init_allocator_(const intptr_t* memory_space,
                                                const int32_t* n_traits,
                                                const AllocatorTrait* traits) {
  return make_allocator(static_cast<uintptr_t>(*memory_space), *n_traits, traits);
}
BOSK_EXPORT AllocatorHandle omp_init_allocator_8_(const intptr_t* memory_space,
                                                  const int64_t* n_traits,
                                                  const AllocatorTrait* traits) {
  return make_allocator(static_cast<uintptr_t>(*memory_space), *n_traits, traits);
}

BOSK_EXPORT void omp_destroy_allocator(AllocatorHandle allocator) { destroy_allocator(allocator); }
BOSK_EXPORT void omp_destroy_allocator_(const AllocatorHandle* allocator) {
  destroy_allocator(*allocator);
}

BOSK_EXPORT AllocatorHandle omp_get_default_allocator() { return default_allocator(); }
BOSK_EXPORT_ALIAS(omp_get_default_allocator) AllocatorHandle omp_get_default_allocator_() noexcept;
BOSK_EXPORT void omp_set_default_allocator(AllocatorHandle allocator) {
  set_default_allocator(allocator);
}
BOSK_EXPORT void omp_set_default_allocator_(const AllocatorHandle* allocator) {
  set_default_allocator(*allocator);
}

BOSK_EXPORT void* omp_alloc(size_t size, AllocatorHandle allocator) {
  return allocate(size, 0, allocator, false);
}
BOSK_EXPORT void* omp_aligned_alloc(size_t alignment, size_t size, AllocatorHandle allocator) {
  return allocate(size, alignment, allocator, false);
}
BOSK_EXPORT void* omp_calloc(size_t count, size_t size, AllocatorHandle allocator) {
  return allocate_array(count, size, 0, allocator);
}
BOSK_EXPORT void* omp_aligned_calloc(size_t alignment, size_t count, size_t size,
                                     AllocatorHandle allocator) {
  return allocate_array(count, size, alignment, allocator);
}
// The block knows who made it, whatever the program says.
BOSK_EXPORT void* omp_realloc(void* block, size_t size, AllocatorHandle allocator,
                              AllocatorHandle /*free_allocator*/) {
  return reallocate(block, size, allocator);
}
BOSK_EXPORT void omp_free(void* block, AllocatorHandle /*allocator*/) { release(block); }

// The allocate directive: compiled code does not look at the result.
BOSK_EXPORT void* GOMP_alloc(size_t alignment, size_t size, AllocatorHandle allocator) {
  void* block = allocate(size, alignment, allocator, false);
  if (block == nullptr && size != 0) {
    bosk::base::gomp_fatal("Out of memory allocating %zu bytes", size);
  }
  return block;
}
// The allocators directive of Fortran: which variables' memory GOMP_alloc made. Who asks takes it over.
BOSK_EXPORT void GOMP_add_alloc(void* block) { remember_block(block); }
BOSK_EXPORT bool GOMP_is_alloc(void* block) { return forget_block(block); }

BOSK_EXPORT void GOMP_free(void* block, AllocatorHandle /*allocator*/) { release(block); }
