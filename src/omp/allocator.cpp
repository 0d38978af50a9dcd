// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocators: traits, pools and fallbacks; a header before every block.
#include "omp/allocator.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <new>

#include "base/message.h"
#include "omp/environment.h"

namespace bosk::omp {
namespace {

// omp_memspace_handle_t.
constexpr uintptr_t kHighBandwidthSpace = 3;
constexpr uintptr_t kLastSpace = 4;

// omp_alloctrait_key_t and omp_alloctrait_value_t.
enum Key : int32_t {
  kSyncHint = 1,
  kAlignment,
  kAccess,
  kPoolSize,
  kFallback,
  kFallbackData,
  kPinned,
  kPartition,
};
constexpr uintptr_t kDefaultValue = UINTPTR_MAX;
enum Value : uintptr_t {
  kFalse = 0,
  kContended = 3,
  kPrivate = 6,
  kAll = 7,
  kCgroup = 10,
  kDefaultMemFallback = 11,
  kNullFallback = 12,
  kAbortFallback = 13,
  kAllocatorFallback = 14,
  kEnvironment = 15,
  kInterleaved = 18,
};

/// What malloc gives, and the largest alignment that needs no room of its own.
constexpr size_t kNaturalAlignment = 16;

/// Sync hint, access and partition are checked and then dropped: malloc serves them all alike.
struct Allocator {
  size_t alignment = kNaturalAlignment;
  size_t pool_size = SIZE_MAX;
  uintptr_t fallback = kDefaultMemFallback;
  AllocatorHandle fallback_allocator = kNullAllocator;
  std::atomic<size_t> used{0};  ///< bytes of the pool that are given away

  /// relaxed throughout: the counter guards no memory, only a sum.
  bool take(size_t size) {
    if (pool_size == SIZE_MAX) return true;
    size_t before = used.load(std::memory_order_relaxed);
    do {
      if (size > pool_size - before) return false;
    } while (!used.compare_exchange_weak(before, before + size, std::memory_order_relaxed));
    return true;
  }
  void give_back(size_t size) {
    if (pool_size != SIZE_MAX) used.fetch_sub(size, std::memory_order_relaxed);
  }
};

/// Lies right before the user's bytes.
struct alignas(kNaturalAlignment) Header {
  void* base;                 ///< what malloc returned
  size_t size;                ///< that the user asked for
  AllocatorHandle allocator;  ///< that it was charged to
};

Header* header_of(void* block) { return static_cast<Header*>(block) - 1; }

Allocator* own_allocator(AllocatorHandle handle) {
  return handle >= kFirstAddress ? reinterpret_cast<Allocator*>(handle) : nullptr;
}

bool in_range(uintptr_t value, uintptr_t least, uintptr_t most) {
  return value == kDefaultValue || (value >= least && value <= most);
}

bool is_power_of_two(uintptr_t value) { return value != 0 && (value & (value - 1)) == 0; }

// False: no such trait or value, or it cannot be had.
bool apply(const AllocatorTrait& trait, Allocator* to) {
  const uintptr_t value = trait.value;
  switch (trait.key) {
    case kSyncHint:
      return in_range(value, kContended, kPrivate);
    case kAccess:
      return in_range(value, kAll, kCgroup);
    case kPartition:
      return in_range(value, kEnvironment, kInterleaved);
    case kPinned:
      return in_range(value, kFalse, kFalse);  // nothing here locks pages
    case kAlignment:
      if (value == kDefaultValue) return true;
      if (!is_power_of_two(value)) return false;
      to->alignment = value > kNaturalAlignment ? value : kNaturalAlignment;
      return true;
    case kPoolSize:
      to->pool_size = value;  // the default is SIZE_MAX itself: no limit
      return true;
    case kFallback:
      if (!in_range(value, kDefaultMemFallback, kAllocatorFallback)) return false;
      to->fallback = value == kDefaultValue ? uintptr_t{kDefaultMemFallback} : value;
      return true;
    case kFallbackData:
      to->fallback_allocator = value == kDefaultValue ? kNullAllocator : value;
      return true;
    default:
      return false;
  }
}

// OpenMP gives every task one of its own; a process-wide one differs only for programs whose threads
// set different defaults at the same time.
constinit std::atomic<AllocatorHandle> default_set{kNullAllocator};

/// One block from malloc, without pool and fallback. Null: no memory, or the sum overflows.
void* raw_block(size_t size, size_t alignment, bool zeroed, AllocatorHandle owner) {
  const size_t slack = alignment > kNaturalAlignment ? alignment : 0;
  size_t total;
  if (__builtin_add_overflow(size, sizeof(Header) + slack, &total)) return nullptr;
  void* base = zeroed ? calloc(1, total) : malloc(total);
  if (base == nullptr) return nullptr;
  uintptr_t at = reinterpret_cast<uintptr_t>(base) + sizeof(Header);
  if (slack != 0) at = (at + alignment - 1) & ~(alignment - 1);
  void* block = reinterpret_cast<void*>(at);
  *header_of(block) = {base, size, owner};
  return block;
}

void* block_of(Allocator* allocator, size_t size, size_t alignment, bool zeroed) {
  if (!allocator->take(size)) return nullptr;
  void* block = raw_block(size, alignment, zeroed, reinterpret_cast<AllocatorHandle>(allocator));
  if (block == nullptr) allocator->give_back(size);
  return block;
}

/// The bytes of the block elsewhere or in place, with the same allocator. Null: no memory; the block
/// is as it was.
void* move_block(void* block, const Header& header, size_t size, size_t alignment) {
  const bool at_begin = static_cast<char*>(block) - static_cast<char*>(header.base) ==
                        static_cast<ptrdiff_t>(sizeof(Header));
  // malloc can grow in place where nothing is aligned.
  if (alignment <= kNaturalAlignment && at_begin) {
    size_t total;
    if (__builtin_add_overflow(size, sizeof(Header), &total)) return nullptr;
    void* base = realloc(header.base, total);
    if (base == nullptr) return nullptr;
    void* moved = static_cast<char*>(base) + sizeof(Header);
    *header_of(moved) = {base, size, header.allocator};
    return moved;
  }
  void* moved = raw_block(size, alignment, false, header.allocator);
  if (moved == nullptr) return nullptr;
  memcpy(moved, block, size < header.size ? size : header.size);
  free(header.base);
  return moved;
}

/// A block that stays with its allocator: the pool is charged for the difference only. Null: the pool
/// or the memory has no room for it.
void* resize(void* block, const Header& header, size_t size) {
  Allocator* allocator = own_allocator(header.allocator);
  if (allocator == nullptr) return move_block(block, header, size, kNaturalAlignment);
  const size_t more = size > header.size ? size - header.size : 0;
  if (!allocator->take(more)) return nullptr;
  void* moved = move_block(block, header, size, allocator->alignment);
  if (moved == nullptr)
    allocator->give_back(more);
  else if (size < header.size)
    allocator->give_back(header.size - size);
  return moved;
}

}  // namespace

AllocatorHandle make_allocator(uintptr_t memory_space, int64_t n_traits,
                               const AllocatorTrait* traits) {
  // Memory of high bandwidth is not to be had from malloc; the other spaces are hints.
  if (memory_space > kLastSpace || memory_space == kHighBandwidthSpace) return kNullAllocator;
  Allocator wanted;
  for (int64_t i = 0; i < n_traits; ++i) {
    if (!apply(traits[i], &wanted)) return kNullAllocator;
  }
  if (wanted.fallback == kAllocatorFallback && wanted.fallback_allocator == kNullAllocator) {
    return kNullAllocator;
  }
  void* memory = malloc(sizeof(Allocator));
  if (memory == nullptr) return kNullAllocator;
  auto* made = new (memory) Allocator;
  made->alignment = wanted.alignment;
  made->pool_size = wanted.pool_size;
  made->fallback = wanted.fallback;
  made->fallback_allocator = wanted.fallback_allocator;
  return reinterpret_cast<AllocatorHandle>(made);
}

void destroy_allocator(AllocatorHandle allocator) { free(own_allocator(allocator)); }

AllocatorHandle default_allocator() {
  // relaxed: the program orders the setting and the use of an allocator itself.
  const AllocatorHandle set = default_set.load(std::memory_order_relaxed);
  if (set != kNullAllocator) return set;
  const AllocatorHandle given = process_icvs().default_allocator;
  return given != kNullAllocator ? given : kDefaultMemAlloc;
}

void set_default_allocator(AllocatorHandle allocator) {
  default_set.store(allocator != kNullAllocator ? allocator : kDefaultMemAlloc,
                    std::memory_order_relaxed);
}

void* allocate(size_t size, size_t alignment, AllocatorHandle handle, bool zeroed) {
  if (size == 0 || (alignment & (alignment - 1)) != 0) return nullptr;
  if (alignment < kNaturalAlignment) alignment = kNaturalAlignment;
  if (handle == kNullAllocator) handle = default_allocator();
  for (;;) {
    Allocator* allocator = own_allocator(handle);
    if (allocator == nullptr) return raw_block(size, alignment, zeroed, handle);
    // A fallback keeps the alignment: the program was promised it.
    if (allocator->alignment > alignment) alignment = allocator->alignment;
    if (void* block = block_of(allocator, size, alignment, zeroed)) return block;
    switch (allocator->fallback) {
      case kNullFallback:
        return nullptr;
      case kAbortFallback:
        base::gomp_fatal("Out of memory allocating %zu bytes", size);
      case kAllocatorFallback:
        handle = allocator->fallback_allocator;
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
  const Header header = *header_of(block);
  if (Allocator* allocator = own_allocator(header.allocator)) allocator->give_back(header.size);
  free(header.base);
}

void* reallocate(void* block, size_t size, AllocatorHandle allocator) {
  if (block == nullptr) return allocate(size, 0, allocator, false);
  if (size == 0) {
    release(block);
    return nullptr;
  }
  const Header header = *header_of(block);
  if (allocator == kNullAllocator) allocator = header.allocator;
  if (allocator == header.allocator) {
    if (void* moved = resize(block, header, size)) return moved;
    // A pool that is too full for the growth is so for the whole block: the fallback decides.
  }
  void* moved = allocate(size, 0, allocator, false);
  if (moved == nullptr) return nullptr;
  memcpy(moved, block, size < header.size ? size : header.size);
  release(block);
  return moved;
}

}  // namespace bosk::omp
