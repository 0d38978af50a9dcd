// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The allocators that were ever made the default and are still there.
#include "omp/default_allocator.h"

#include <atomic>

namespace bosk::omp {
namespace {

constexpr uint32_t kFirstOwn = kLastPredefined + 1;

constinit std::atomic<AllocatorHandle> numbered[256];

}  // namespace

// relaxed throughout: the program orders the making, the setting and the use of an allocator itself.

AllocatorNumber number_of_allocator(AllocatorHandle allocator) {
  if (allocator <= kLastPredefined) return static_cast<AllocatorNumber>(allocator);
  // Twice in the table, if two threads number it at once, is no harm: forgetting takes out all.
  for (uint32_t i = kFirstOwn; i < 256; i++) {
    if (numbered[i].load(std::memory_order_relaxed) == allocator) {
      return static_cast<AllocatorNumber>(i);
    }
  }
  for (uint32_t i = kFirstOwn; i < 256; i++) {
    AllocatorHandle none = kNullAllocator;
    if (numbered[i].compare_exchange_strong(none, allocator, std::memory_order_relaxed)) {
      return static_cast<AllocatorNumber>(i);
    }
  }
  return 0;
}

AllocatorHandle allocator_of_number(AllocatorNumber number) {
  return number <= kLastPredefined ? number : numbered[number].load(std::memory_order_relaxed);
}

void forget_allocator(AllocatorHandle allocator) {
  if (allocator <= kLastPredefined) return;
  for (uint32_t i = kFirstOwn; i < 256; i++) {
    AllocatorHandle handle = allocator;
    numbered[i].compare_exchange_strong(handle, kNullAllocator, std::memory_order_relaxed);
  }
}

}  // namespace bosk::omp
