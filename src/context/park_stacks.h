// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The small stacks that donors park on, many to a mapping: saves two mappings a donor.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <atomic>
#include <new>

namespace bosk::context {

/// Hands out stacks; one thread at a time. Any thread may give one up for good, with leave().
class ParkStacks {
 public:
  static constexpr size_t kBytes = 32 * 1024;

  /// The low end of a stack, or null.
  char* take() {
    if (left_ == 0) {
      drop();
      void* memory = mmap(nullptr, kBytes * kPerSlab, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) return nullptr;
      new (memory) Slab{{1}};
      slab_ = static_cast<char*>(memory);
      left_ = kPerSlab;
    }
    --left_;
    users(slab_).fetch_add(1, std::memory_order_relaxed);
    return slab_ + left_ * kBytes;
  }

  /// What the stack that was taken last is part of.
  char* slab() const { return slab_; }

  /// The stack that was taken last was not needed.
  void put_back() {
    ++left_;
    leave(slab_);
  }

  /// No more stacks of the present slab are handed out.
  void drop() {
    if (slab_ != nullptr) leave(slab_);
    slab_ = nullptr;
    left_ = 0;
  }

  /// Is the address on one of a slab's stacks? None where `slab` is null.
  static bool contains(const char* slab, uintptr_t address) {
    return slab != nullptr && address - reinterpret_cast<uintptr_t>(slab) < kBytes * kPerSlab;
  }

  /// One user less.
  static void leave(char* slab) {
    // acq_rel: the last one unmaps what the others have used.
    if (users(slab).fetch_sub(1, std::memory_order_acq_rel) == 1) munmap(slab, kBytes * kPerSlab);
  }

 private:
  static constexpr size_t kPerSlab = 64;

  /// At the low end of the lowest stack, which is large enough for both.
  struct Slab {
    std::atomic<uint32_t> users;  ///< stacks that are in use, and one while more are handed out
  };
  static std::atomic<uint32_t>& users(char* slab) { return reinterpret_cast<Slab*>(slab)->users; }

  char* slab_ = nullptr;
  size_t left_ = 0;
};

}  // namespace bosk::context
