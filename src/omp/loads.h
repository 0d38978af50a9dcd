// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is expected of the members of teams: told by the program, by BOSK_LOAD, or measured
// (docs/hints.md).
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/spinlock.h"
#include "omp/team_memory.h"
#include "omp/team_relation.h"
#include "policies/team_placement.h"

namespace bosk::sched {
struct Seats;
struct Thread;
}  // namespace bosk::sched

namespace bosk::omp {

struct LoadBook;
struct LoadMeter;
struct Team;
struct ContentionGroup;

constexpr uint32_t kNoLoad = UINT32_MAX;
/// Of larger teams nothing is kept: whoever has so many members shares out their work by numbers.
constexpr uint32_t kMostWithLoads = 4096;

/// The loads of the teams of one size at one place in the nest, from region to region. Found by a key
/// made of sizes and thread numbers up to the initial thread; type-stable until that ends.
///
/// Members write their own load and then add to `stamp` (release); who decides anything by the loads
/// first reads the stamp (acquire) and keeps it beside the decision: as long as the stamp is the same
/// the decision holds. It is changed by read-modify-writes only, so a stamp that is seen brings all
/// loads that were told before it.
struct TeamLoads {
  uint64_t key = 0;
  uint32_t size = 0;
  TeamLoads* next = nullptr;                  ///< in the same bucket
  std::atomic<uint64_t> stamp{0};             ///< of no other object or contents; never 0
  std::atomic<uint32_t>* load = nullptr;      ///< size entries; kNoLoad: not told
  std::atomic<bool> told{false};              ///< else what was measured counts
  std::atomic<uint32_t>* measured = nullptr;  ///< size entries; kNoLoad: nothing
  LoadMeter* meter = nullptr;                 ///< of level-1 teams (omp/load_meter.h)
  std::atomic<TeamMemory*> memory{nullptr};   ///< what its members work on; null: nobody said
  std::atomic<const ToldRelation*> relation{nullptr};  ///< null: nobody said but the environment
  uint32_t level = 0;                                  ///< of its teams

  /// What counts now.
  const std::atomic<uint32_t>& of(uint32_t index) const {
    return told.load(std::memory_order_relaxed) ? load[index] : measured[index];
  }

  // Homes of the members of an outermost team, which every one of them asks for.
  base::SpinLock lock;
  uint64_t homes_stamp = 0;
  const sched::Seats* homes_seats = nullptr;  ///< of the pool then; null as well where nobody asked
  policies::TeamPlacement homes;
  uint32_t* scratch = nullptr;  ///< size entries
};

/// The order in which a team's ghosts are claimed; recycled with the team.
struct GhostOrder {
  uint32_t* memory = nullptr;
  uint32_t capacity = 0;
  uint32_t first = 0;
  uint64_t stamp = 0;  ///< what it was made from; 0: nothing
  bool differs = false;
};

/// Where in this process anything may be known about loads.
enum class LoadsKnown : uint8_t {
  kNowhere,
  kLevel1,      ///< they are measured there
  kEverywhere,  ///< somebody has told some
};

namespace detail {
extern std::atomic<LoadsKnown> loads_known;
}

/// Only grows.
inline LoadsKnown loads_known() {
  // relaxed: who comes too early does without.
  return detail::loads_known.load(std::memory_order_relaxed);
}
void expect_loads(LoadsKnown where);

/// What tells places in the nest apart: a region of `size` that member `index` of `outer` opens. Size 0: any.
uint64_t place_key(const Team* outer, uint32_t index, uint32_t size);

/// For the region of `size` that member `index` of `outer` opens; null: nothing is known. With preemption
/// on.
TeamLoads* find_loads(Team* outer, uint32_t index, uint32_t size);
/// The stamp of what is known, of loads, memory and relation; 0: nothing. All only grow, so their sum tells when one has.
inline uint64_t stamp_of(const TeamLoads* loads) {
  if (loads == nullptr) return 0;
  // acquire: a stamp of memory that is seen brings the footprints.
  const TeamMemory* memory = loads->memory.load(std::memory_order_acquire);
  const ToldRelation* relation = loads->relation.load(std::memory_order_acquire);
  return loads->stamp.load(std::memory_order_acquire) +
         (relation != nullptr ? relation->stamp.load(std::memory_order_acquire) : 0) +
         (memory != nullptr ? memory->stamp.load(std::memory_order_acquire) : 0);
}
/// Loads of all members; those of which nothing is known have the mean. False: nothing is known of any.
bool read_loads(const TeamLoads& loads, uint32_t* to);

/// The calling thread's team has this memory from now on, also where it is open already. False: no memory, or
/// too many members.
bool give_memory(Team* team, TeamMemory* memory);

enum class LoadTold : uint8_t { kKept, kNoMemory };
/// Of the calling thread's member, or if it is in a team of one of the one who opened that. kNoLoad
/// takes it back.
LoadTold tell_load(sched::Thread* me, uint32_t load);

/// How many of `wanted` threads the load of the calling thread's member is worth, where the program
/// leaves the size open.
uint32_t team_size_by_load(const sched::Thread* me, uint32_t wanted);

/// Sets Bubble::order of a team that is about to open: ghosts first, first + 1, … start with the one that
/// has most to do. With preemption on.
void order_ghosts(Team* team, uint32_t first);

/// Frees what the team keeps; of an initial team with all that was told in its contention group.
void free_loads(Team* team);

}  // namespace bosk::omp
