// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP's teams as users of memory, for who looks at them from outside: the adapter (locality/service.h) of those that are open and
// have memory, under the policy memory. Memory comes, or is marked; the members stay.
#pragma once

#include <stdint.h>

namespace bosk::sched {
struct Thread;
}

namespace bosk::omp {

struct Team;

/// show_open_team(), and from now on it is looked at now and then, where memory comes to teams. If there is no thread to be had for
/// that, one line says so. `me`, with preemption on.
void show_to_watch(sched::Thread* me, Team* team, uint32_t natives);

}  // namespace bosk::omp
