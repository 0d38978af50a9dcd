// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an OpenMP allocator is asked to be: its memory space and traits, as numbers of omp.h and as text.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::omp {

/// omp_allocator_handle_t: one of the predefined ones, or the address of an Allocator.
using AllocatorHandle = uintptr_t;

constexpr AllocatorHandle kNullAllocator = 0;
constexpr AllocatorHandle kDefaultMemAlloc = 1;
constexpr AllocatorHandle kLargeCapMemAlloc = 2;
constexpr AllocatorHandle kHighBwMemAlloc = 4;
constexpr AllocatorHandle kLastPredefined = 8;
/// Numbers below this one are for predefined allocators; no address is that low.
constexpr AllocatorHandle kFirstAddress = 201;

/// omp_alloctrait_t.
struct AllocatorTrait {
  int32_t key;
  uintptr_t value;
};
static_assert(sizeof(AllocatorTrait) == 2 * sizeof(uintptr_t));

/// omp_memspace_handle_t.
enum MemorySpace : uint8_t {
  kDefaultSpace = 0,
  kLargeCapacitySpace,
  kConstantSpace,
  kHighBandwidthSpace,
  kLowLatencySpace,
};
constexpr uintptr_t kLastSpace = kLowLatencySpace;

/// omp_alloctrait_key_t.
enum TraitKey : int32_t {
  kSyncHint = 1,
  kAlignment,
  kAccess,
  kPoolSize,
  kFallback,
  kFallbackData,
  kPinned,
  kPartition,
};

/// omp_alloctrait_value_t.
enum TraitValue : uintptr_t {
  kFalse = 0,
  kTrue = 1,
  kContended = 3,
  kPrivate = 6,
  kAll = 7,
  kCgroup = 10,
  kDefaultMemFallback = 11,
  kNullFallback = 12,
  kAbortFallback = 13,
  kAllocatorFallback = 14,
  kEnvironment = 15,
  kNearest = 16,
  kBlocked = 17,
  kInterleaved = 18,
  kDefaultValue = UINTPTR_MAX,
};

/// What malloc gives, and the largest alignment that needs no room of its own.
constexpr size_t kNaturalAlignment = 16;

struct AllocatorTraits {
  MemorySpace space = kDefaultSpace;
  bool pinned = false;
  uint8_t sync_hint = kContended;
  uint8_t access = kAll;
  uint8_t fallback = kDefaultMemFallback;
  uint8_t partition = kEnvironment;
  uint16_t given = 0;           ///< bit 1 << TraitKey: somebody named it
  size_t alignment = 1;         ///< a power of two
  size_t pool_size = SIZE_MAX;  ///< SIZE_MAX: no limit
  AllocatorHandle fallback_allocator = kNullAllocator;
};

/// False: there is no such trait or value; nothing was changed.
bool apply_trait(const AllocatorTrait& trait, AllocatorTraits* to);

/// False: the traits do not go together (a fallback to an allocator, but none is named).
bool traits_fit(const AllocatorTraits& traits);

/// What OMP_ALLOCATOR asks for.
struct AllocatorSetting {
  AllocatorHandle predefined = kDefaultMemAlloc;  ///< kNullAllocator: one with `traits`
  AllocatorTraits traits;
};

/// `omp_…_mem_alloc`, or `omp_…_mem_space[:trait=value{,trait=value}]`, where traits and values are
/// spelled as in omp.h without `omp_atk_` and `omp_atv_`; fb_data is a predefined allocator. Any case,
/// blanks between the words. False: malformed, nothing was changed.
bool parse_allocator(const char* text, AllocatorSetting* setting);

/// The name of a predefined allocator handle; null: it is none.
const char* allocator_name(AllocatorHandle allocator);

/// The setting in its own grammar, traits in the order of their keys and only those that were given.
constexpr size_t kAllocatorText = 384;
void format_allocator(const AllocatorSetting& setting, char (&text)[kAllocatorText]);

}  // namespace bosk::omp
