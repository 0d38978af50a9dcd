// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the places of one contention group are that have memory (team_memory.h).
#pragma once

#include "omp/place_book.h"
#include "omp/team_memory.h"

namespace bosk::omp {

struct MemoryBook : PlaceBook<TeamMemory> {
  /// Programs that attach at ever new places would fill the memory.
  static constexpr uint32_t kMost = 1 << 16;
  std::atomic<uint32_t> places{0};
  std::atomic<MemoryBook*> next{nullptr};  ///< of open_teams.cpp
};

}  // namespace bosk::omp
