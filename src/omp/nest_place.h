// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whom a program means that says something of its teams: a place in the nest.
#pragma once

#include <stdint.h>

namespace bosk::sched {
struct Thread;
}  // namespace bosk::sched

namespace bosk::omp {

struct ContentionGroup;
struct Team;

/// Members behind that have no place of their own; as kMostWithLoads.
constexpr uint32_t kMostWithMemory = 4096;

enum class Whose : uint8_t { kCaller, kCallersTeam, kNextTeam, kNextMember };
struct Addressee {
  Whose whose;
  uint32_t member = 0;  ///< for kNextMember
};

/// Where an addressee is in the nest.
struct NestPlace {
  static constexpr uint32_t kWholeTeam = UINT32_MAX;

  Team* outer = nullptr;
  uint32_t index = 0;
  Team* open = nullptr;  ///< the team that is there now; null: it is of a region to come
  uint32_t member = kWholeTeam;

  uint64_t key() const;
  ContentionGroup* group() const;
};

/// BOSK_OK; BOSK_EINVAL, BOSK_ESTATE: outside of regions there is no such member or team; BOSK_ENOMEM: in so large a team.
int find_place(const sched::Thread* me, Addressee who, NestPlace* place);

}  // namespace bosk::omp
