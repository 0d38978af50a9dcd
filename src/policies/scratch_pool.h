// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Working memory of policies: kept from call to call, one piece per caller at a time.
#pragma once

#include <new>

#include "base/mapped_array.h"
#include "base/spinlock.h"

namespace bosk::policies {

/// T has `T* next_scratch` and `void release()` and is trivially destructible. Pieces come straight
/// from the kernel, so that this works with preemption off; each stays as large as its largest use.
template <class T>
class ScratchPool {
 public:
  /// Null: out of memory.
  T* take() {
    {
      base::SpinGuard guard(lock_);
      if (T* piece = free_) {
        free_ = piece->next_scratch;
        return piece;
      }
    }
    void* memory = base::map_pages(sizeof(T));
    return memory != nullptr ? new (memory) T : nullptr;
  }
  void give(T* piece) {
    base::SpinGuard guard(lock_);
    piece->next_scratch = free_;
    free_ = piece;
  }
  /// Frees all pieces; none may be out.
  void release() {
    while (T* piece = free_) {
      free_ = piece->next_scratch;
      piece->release();
      base::unmap_pages(piece, sizeof(T));
    }
  }

 private:
  base::SpinLock lock_;
  T* free_ = nullptr;
};

}  // namespace bosk::policies
