// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How workers and their kernel threads begin: for pool.cpp.
#pragma once

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "sched/worker.h"

namespace bosk::sched {

inline constinit std::atomic<uint32_t> live_workers{
    0};  ///< of all pools, without the initial threads

template <typename T>
T* make_record() {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(T) < 64 ? 64 : alignof(T), sizeof(T)) != 0)
    base::gomp_fatal("Out of memory allocating %zu bytes", sizeof(T));
  return new (memory) T;
}

/// Bounds of the calling pthread's stack, as POSIX tells them.
void find_stack(Thread* me);

/// A worker that nobody plays yet.
Worker* make_worker(Pool* pool, uint32_t index);
/// One more worker with a kernel thread of its own. 0 or an errno value.
int start_worker(Pool* pool, uint32_t index);

/// One of its workers ends; the last frees it.
void release_pool(Pool* pool);

}  // namespace bosk::sched
