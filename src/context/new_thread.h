// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel threads of our own.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <time.h>

namespace bosk::context {

/// pthread_create(), patient where the kernel refuses for a moment: while a thread of the process is in
/// execve(2), nobody gets a thread (EAGAIN), and who then gave up and ended the process would end it before
/// the new program has begun. There is nothing to wait on: either this thread is gone next, or exec has
/// failed and threads can be had again. Where a limit is the reason, it is told so much later.
inline int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*),
                         void* argument) {
  constexpr int kTries = 64;
  constexpr timespec kPause{0, 1'000'000};
  for (int tries = 1;; ++tries) {
    const int error = pthread_create(thread, attributes, main, argument);
    if (error != EAGAIN || tries == kTries) return error;
    nanosleep(&kPause, nullptr);
  }
}

}  // namespace bosk::context
