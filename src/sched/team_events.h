// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What was done with teams that last, by region of the program: for the report, which says what became of whom, and why (2005 §3.3.3, §5).
// They are rare: once a team that is new, or a wait, a tick, a time slice.
#pragma once

#include <stdint.h>

#include "sched/bubble.h"

namespace bosk::sched {

enum class TeamEvent : uint8_t {
  kPlaced,         ///< a policy said where its members are at home, by its shape alone
  kPlacedByHints,  ///< … by loads that are known of them, or by memory
  kSeated,         ///< a relation gave it a part of the machine
  kTaken,          ///< PUs of another node that had nothing to do took it whole
  kResettled,      ///< that node kept it, and its memory came along
  kExchanged,      ///< its members went to their memory, by exchanging their seats
  kGangOpened,     ///< it was opened as a gang
  kGangTurn,       ///< all its members got CPUs at the same time because it is a gang
  kPollTurn,       ///< … because they were found to poll for each other
};
constexpr uint32_t kTeamEvents = 9;

/// Of a region without a number nothing is noted. Any thread, any state of preemption.
void note_team_event(uint32_t region, TeamEvent event);
inline void note_team_event(const Bubble* team, TeamEvent event) {
  note_team_event(team->region.load(std::memory_order_relaxed), event);
}
/// It has begun a turn together with the others of its team.
void note_joint_turn(const Bubble* team);

/// `region` < kSampledRegions.
uint64_t team_events(uint32_t region, TeamEvent event);
void forget_team_events_after_fork();

}  // namespace bosk::sched
