// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocators: handles, pools and fallbacks.
#include "omp/allocator.h"

#include <stdlib.h>
#include <string.h>

#include <new>

#include "base/message.h"
#include "omp/blocks.h"
#include "omp/default_allocator.h"
#include "omp/environment.h"
#include "omp/routines.h"

namespace bosk::omp {
namespace {

constexpr AllocatorTraits of_space(MemorySpace space) {
  AllocatorTraits traits;
  traits.space = space;
  return traits;
}

// The predefined allocators whose space may be memory of its own. The others are over malloc.
constinit Allocator large_capacity{.traits = of_space(kLargeCapacitySpace)};
constinit Allocator high_bandwidth{.traits = of_space(kHighBandwidthSpace)};

/// Null: a predefined one over malloc.
Allocator* object_of(AllocatorHandle handle) {
  if (handle >= kFirstAddress) return reinterpret_cast<Allocator*>(handle);
  if (handle == kLargeCapMemAlloc) return &large_capacity;
  if (handle == kHighBwMemAlloc) return &high_bandwidth;
  return nullptr;
}

/// As blocks have it in their header: one of two that mean the same.
AllocatorHandle in_header(AllocatorHandle handle) {
  Allocator* object = object_of(handle);
  return object != nullptr ? reinterpret_cast<AllocatorHandle>(object) : handle;
}

bool stays(AllocatorHandle handle) {
  return handle < kFirstAddress || handle == process_icvs().default_allocator;
}

size_t at_least_natural(size_t alignment) {
  return alignment > kNaturalAlignment ? alignment : kNaturalAlignment;
}

/// A block that stays with its allocator: the pool is charged for the difference only. Null: the pool
/// or the memory has no room for it.
void* resize(void* block, size_t size) {
  const BlockHeader& header = *header_of(block);
  const size_t before = header.size;
  Allocator* allocator = object_of(header.allocator);
  if (allocator == nullptr) return resize_block(nullptr, block, size, kNaturalAlignment);
  const size_t more = size > before ? size - before : 0;
  if (!allocator->take(more)) return nullptr;
  void* moved = resize_block(allocator, block, size, at_least_natural(allocator->traits.alignment));
  if (moved == nullptr) {
    allocator->give_back(more);
  } else if (size < before) {
    allocator->give_back(before - size);
  }
  return moved;
}

}  // namespace

AllocatorHandle make_allocator(uintptr_t memory_space, int64_t n_traits,
                               const AllocatorTrait* traits) {
  if (memory_space > kLastSpace) return kNullAllocator;
  AllocatorTraits wanted = of_space(static_cast<MemorySpace>(memory_space));
  for (int64_t i = 0; i < n_traits; ++i) {
    if (!apply_trait(traits[i], &wanted)) return kNullAllocator;
  }
  if (!traits_fit(wanted)) return kNullAllocator;
  void* memory = malloc(sizeof(Allocator));
  if (memory == nullptr) return kNullAllocator;
  return reinterpret_cast<AllocatorHandle>(new (memory) Allocator{.traits = wanted});
}

void destroy_allocator(AllocatorHandle allocator) {
  if (stays(allocator)) return;
  forget_allocator(allocator);
  object_of(allocator)->small.release_all();
  free(object_of(allocator));
}

AllocatorHandle default_allocator() {
  const ImplicitTask* member = known_member();
  const AllocatorNumber number = member != nullptr ? member->icvs->allocator : AllocatorNumber{0};
  if (number == 0) return process_icvs().default_allocator;
  const AllocatorHandle set = allocator_of_number(number);
  return set != kNullAllocator ? set : kDefaultMemAlloc;
}

void set_default_allocator(AllocatorHandle allocator) {
  if (allocator == kNullAllocator) allocator = kDefaultMemAlloc;
  const AllocatorNumber number = number_of_allocator(allocator);
  if (number == 0) {
    static base::SayOnce said;
    if (said.first()) {
      base::say(
          "omp_set_default_allocator: 247 allocators are the default of some task already; "
          "destroy those that are not needed");
    }
    return;
  }
  own_icvs(current_thread()->member)->allocator = number;
}

void* allocate(size_t size, size_t alignment, AllocatorHandle handle, bool zeroed) {
  if (size == 0 || (alignment & (alignment - 1)) != 0) return nullptr;
  alignment = at_least_natural(alignment);
  if (handle == kNullAllocator) handle = default_allocator();
  for (;;) {
    Allocator* allocator = object_of(handle);
    if (allocator == nullptr) return block_from_malloc(size, alignment, zeroed, handle);
    const AllocatorTraits& traits = allocator->traits;
    // A fallback keeps the alignment: the program was promised it.
    if (traits.alignment > alignment) alignment = traits.alignment;
    if (allocator->take(size)) {
      void* block = make_block(allocator, handle, size, alignment, zeroed);
      if (block != nullptr) return block;
      allocator->give_back(size);
    }
    switch (traits.fallback) {
      case kNullFallback:
        return nullptr;
      case kAbortFallback:
        base::gomp_fatal("Out of memory allocating %zu bytes", size);
      case kAllocatorFallback:
        handle = traits.fallback_allocator;
        break;
      default:
        handle = kDefaultMemAlloc;
        break;
    }
  }
}

void* allocate_array(size_t count, size_t size, size_t alignment, AllocatorHandle allocator) {
  size_t total;
  if (count == 0 || size == 0) return nullptr;
  // What no allocator can have takes the way of what this one has not: its fallback decides.
  if (__builtin_mul_overflow(count, size, &total)) total = SIZE_MAX;
  return allocate(total, alignment, allocator, true);
}

void release(void* block) {
  if (block == nullptr) return;
  const BlockHeader& header = *header_of(block);
  if (Allocator* allocator = object_of(header.allocator)) allocator->give_back(header.size);
  free_block(header);
}

void* reallocate(void* block, size_t size, AllocatorHandle allocator) {
  if (block == nullptr) return allocate(size, 0, allocator, false);
  if (size == 0) {
    release(block);
    return nullptr;
  }
  const size_t before = header_of(block)->size;
  const AllocatorHandle owner = header_of(block)->allocator;
  if (allocator == kNullAllocator) allocator = owner;
  if (in_header(allocator) == owner) {
    if (void* moved = resize(block, size)) return moved;
    // A pool that is too full for the growth is so for the whole block: the fallback decides.
  }
  void* moved = allocate(size, 0, allocator, false);
  if (moved == nullptr) return nullptr;
  memcpy(moved, block, size < before ? size : before);
  release(block);
  return moved;
}

}  // namespace bosk::omp
