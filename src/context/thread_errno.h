// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// errno of the installed identity, without a call: every region looks at it twice.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "context/switch.h"

namespace bosk::context {

/// How far errno is from the thread pointer: libc is there from the start, so that all threads agree. Known once a
/// thread has been adopted.
extern constinit ptrdiff_t errno_distance;

inline void find_errno() {
  // All who come here write the same.
  __atomic_store_n(&errno_distance,
                   reinterpret_cast<char*>(&errno) - reinterpret_cast<char*>(thread_pointer()),
                   __ATOMIC_RELAXED);
}

/// relaxed: whoever asks has been adopted.
inline ptrdiff_t distance_of_errno() { return __atomic_load_n(&errno_distance, __ATOMIC_RELAXED); }

// Volatile, like thread_block(): what runs in between may change the identity.
inline int thread_errno() {
#if defined(__x86_64__)
  int value;
  asm volatile("movl %%fs:(%1), %0" : "=r"(value) : "r"(distance_of_errno()));
  return value;
#else
  return *reinterpret_cast<int*>(thread_pointer() + static_cast<uintptr_t>(distance_of_errno()));
#endif
}
inline void set_thread_errno(int value) {
#if defined(__x86_64__)
  asm volatile("movl %0, %%fs:(%1)" ::"r"(value), "r"(distance_of_errno()) : "memory");
#else
  *reinterpret_cast<int*>(thread_pointer() + static_cast<uintptr_t>(distance_of_errno())) = value;
#endif
}

/// While it lives the runtime may call what sets errno: the program's comes back.
class ErrnoKept {
 public:
  ErrnoKept() : kept_(errno) {}
  ~ErrnoKept() { errno = kept_; }
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;

 private:
  int kept_;
};

}  // namespace bosk::context
