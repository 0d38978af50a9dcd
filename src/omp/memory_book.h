// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the places of one contention group are that have memory (team_memory.h).
#pragma once

#include "omp/team_memory.h"

namespace bosk::omp {

/// Of one contention group. Places are added in front of their bucket and stay.
struct MemoryBook {
  static constexpr uint32_t kBuckets = 64;
  /// Programs that attach at ever new places would fill the memory.
  static constexpr uint32_t kMost = 1 << 16;
  std::atomic<TeamMemory*> bucket[kBuckets] = {};
  std::atomic<uint32_t> places{0};
  std::atomic<MemoryBook*> next{nullptr};  ///< of open_teams.cpp
};

}  // namespace bosk::omp
