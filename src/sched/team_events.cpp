// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Relaxed counters: nothing goes by them.
#include "sched/team_events.h"

#include <atomic>

#include "sched/time_samples.h"

namespace bosk::sched {
namespace {

constinit std::atomic<uint64_t> counts[kSampledRegions][kTeamEvents];

}  // namespace

void note_team_event(uint32_t region, TeamEvent event) {
  if (region == 0 || region >= kSampledRegions) return;
  counts[region][static_cast<uint32_t>(event)].fetch_add(1, std::memory_order_relaxed);
}

void note_joint_turn(const Bubble* team) {
  const bool gang = team->together.load(std::memory_order_relaxed) == Together::kGang;
  note_team_event(team, gang ? TeamEvent::kGangTurn : TeamEvent::kPollTurn);
}

uint64_t team_events(uint32_t region, TeamEvent event) {
  return counts[region][static_cast<uint32_t>(event)].load(std::memory_order_relaxed);
}

void forget_team_events_after_fork() {
  for (auto& of_region : counts)
    for (auto& count : of_region) count.store(0, std::memory_order_relaxed);
}

}  // namespace bosk::sched
