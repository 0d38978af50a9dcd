// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// By what processes are observed, and what that does not see.
#pragma once

#include "affinity/observer/observer.h"

namespace bosk::affinity {

struct Means {
  bool has_events = true;      ///< of faults; else threads are told by counts of their faults
  bool has_soft_dirty = true;  ///< where a process has no userfaultfd
};

/// In words, as far as this kernel goes: can_see, source and blind. `balances`: the kernel's balancing is on.
void describe(const Means& means, bool balances, ObserverCounts* counts);

}  // namespace bosk::affinity
