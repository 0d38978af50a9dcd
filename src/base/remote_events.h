// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which hardware events tell loads from memory of the own node from loads from other nodes.
#pragma once

#include <stdint.h>

namespace bosk::base {

/// Two events for CacheCounter: `accesses` loads that memory has answered, `misses` those of other nodes.
struct RemoteEvents {
  uint32_t type;
  uint64_t loads;  ///< of the own node, or of any: kernels differ
  uint64_t remote;
  const char* name;
};

/// Asks the kernel; the events are ones that the caller may count. False: there are none, as in most virtual machines.
bool find_remote_events(RemoteEvents* events);

}  // namespace bosk::base
