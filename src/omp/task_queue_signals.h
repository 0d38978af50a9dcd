// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How those who queue tasks and those who look for them do not miss each other.
//
// Queueing is frequent, running dry is rare, so the fence between them is asymmetric: who queues
// only looks at a flag afterwards; who wants to rely on having found nothing changes the flag, has
// every processor pass a full fence (membarrier(2)), and looks once more. Then either the queuer
// sees the changed flag, or the other one sees the task.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::omp {

/// `flag` says that tasks are queued: waiting threads look for tasks only while it is set.
template <class A, class Flag>
inline bool must_set_work_flag(const Flag& flag) {
  A::light_barrier();
  return flag.load(std::memory_order_relaxed) == 0;
}

/// Everything was found empty. The caller looks once more afterwards, and sets the flag again if it
/// finds something.
template <class A, class Flag>
inline void clear_work_flag(Flag& flag) {
  flag.store(0, std::memory_order_relaxed);
  A::heavy_barrier();
}

/// The caller has made its wait known and looks once more before it sleeps.
template <class A>
inline void before_last_look() {
  A::heavy_barrier();
}

/// The caller has queued something that only a thread which may have made its wait known can run,
/// and looks at that next.
template <class A>
inline void after_queueing() {
  A::light_barrier();
}

}  // namespace bosk::omp
