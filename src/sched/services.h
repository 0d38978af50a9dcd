// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All service threads together: what pauses and forked children do to them.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// How many forks this process is away from the first one, plus 1. What a lock guards when its holder is not
/// in this process can be told by it (threads/sync/wait_list.h). Written by the only thread there is.
inline constinit std::atomic<uint32_t> process_generation{1};

/// One more, of a higher layer, as soon as there is one.
struct OtherService {
  void (*stop)();
  void (*forget_after_fork)();
};
inline constinit std::atomic<const OtherService*> other_service{nullptr};

/// Somebody waits for a descriptor, although nobody is in the scheduler.
bool services_are_needed();
/// Ends those that run. Nobody waits, or can begin to (pause.h).
void stop_services();
void services_forget_after_fork();

}  // namespace bosk::sched
