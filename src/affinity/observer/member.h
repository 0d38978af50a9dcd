// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The processes that an observer has, with what it keeps of each.
#pragma once

#include <sys/types.h>

#include <map>
#include <utility>

#include "affinity/observer/observed_process.h"

namespace bosk::affinity {

struct Member {
  explicit Member(ObservedProcess made) : process(std::move(made)) {}
  ObservedProcess process;
  double life_ns = 0;    ///< of CPUs, as long as it has been observed
  double looked_at = 0;  ///< at what it has mapped
  double own_faults =
      0;  ///< how likely a look finds faults that have nothing to do with what is armed
  bool must_look = true;
  bool is_left_alone = false;
  bool was_looked_at = false;
  bool has_said_why = false;  ///< why it has no userfaultfd is counted
};

using Members = std::map<pid_t, Member>;

}  // namespace bosk::affinity
