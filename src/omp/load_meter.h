// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads that nobody has told: the time that members of level-1 teams and all inside of them take, measured now and
// then (docs/hints.md).
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/meter.h"

namespace bosk::omp {

struct Team;

/// Of the teams of one size at one place; part of TeamLoads. Plain fields are the opener's.
struct LoadMeter {
  std::atomic<bool> nests{false};    ///< members open teams of several: else loads are of no use
  std::atomic<uint32_t> regions{0};  ///< opened since then
  bool has_average = false;
  std::atomic<uint64_t>* spent = nullptr;  ///< by each member in the region that is metered
  uint64_t* average = nullptr;             ///< of each member, over such regions
};

/// Null: no memory. One block, for free().
LoadMeter* make_load_meter(uint32_t size);

/// Loads are measured in this process.
bool measures_loads();
/// Nested teams are placed by policies: from now on loads are measured, unless the user forbids it.
void measure_loads_from_now_on();

/// By the opener of a team of known loads, or inside of one, before any member starts. Preemption is off.
void meter_region(sched::Thread* me, Team* team);
/// While sched::metering(): the thread begins as a member; has ended as one; goes on with what it did
/// before. Any state of preemption.
void meter_member(sched::Thread* me, const Team* team, uint32_t index);
void meter_end_of_member(sched::Thread* me, const Team* team);
void go_on_with(sched::Thread* me, const sched::Account& account);
/// After the join: what was measured becomes the members' loads, if it differs from what they were.
void learn_loads(Team* team);

// ---- the rules, without regions

/// Is the region, the n-th with nested teams, to be metered? The first one makes threads and pages.
constexpr bool is_metered(uint32_t n) {
  constexpr uint32_t kFirst = 4, kThenEvery = 16;
  return n != 0 && (n <= kFirst || n % kThenEvery == 0);
}

/// Averages in 1000ths of their mean, at least 1. False: none of them is further than a quarter of the mean
/// from its `present` (UINT32_MAX: 1000), so nothing is worth moving for.
bool loads_from_averages(const uint64_t* average, const uint32_t* present, uint32_t size,
                         uint32_t* loads);

}  // namespace bosk::omp
