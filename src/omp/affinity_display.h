// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMP_DISPLAY_AFFINITY: members tell where they run, unless that was told before (OpenMP 5.2 §21.2.9).
#pragma once

#include "sched/thread.h"

namespace bosk::omp {

/// Called for each member when it begins, while display-affinity-var is true; any state of preemption,
/// which is on while the line is written. The opener, who begins first, decides for its team.
void display_member_affinity(sched::Thread* me);

}  // namespace bosk::omp
