// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All queues of tasks that the process has: numbered, never freed, handed on from team to team.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::omp {

struct MemberQueue;

/// One that no team has, perhaps a new one. Ends the program if there is no memory.
MemberQueue* take_queue_of_process();
/// Its team has ended. A late thief may still look at it.
void give_queue_back(MemberQueue* queue);

/// On cache lines of its own; ends the program if there is none.
void* allocate_for_queues(size_t bytes);

/// In a forked child: nobody holds the lock.
void process_queues_forget_after_fork();

}  // namespace bosk::omp
