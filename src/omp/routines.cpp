// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks along the nest of teams, and pausing.
#include "omp/routines.h"

#include "omp/host_teams.h"
#include "sched/pause.h"
#include "sched/scheduler.h"

namespace bosk::omp {
namespace {

struct Ancestor {
  const Team* team = nullptr;  ///< null: there is no such level
  uint32_t index = 0;
};

Ancestor ancestor(int64_t at) {
  const ImplicitTask* member = known_member();
  if (member == nullptr || at < 0 || at > member->team->level) return {};
  const Team* team = member->team;
  uint32_t index = member->index;
  while (team->level > at) {
    index = team->opener_index;
    team = parent_team(team);
  }
  return {team, index};
}

}  // namespace

int ancestor_thread_num(int64_t at) {
  if (at == 0) return 0;
  const Ancestor found = ancestor(at);
  return found.team == nullptr ? -1 : static_cast<int>(found.index);
}

int ancestor_team_size(int64_t at) {
  if (at == 0) return 1;
  const Ancestor found = ancestor(at);
  return found.team == nullptr ? -1 : static_cast<int>(found.team->size);
}

void expect_regions_here() {
  if (sched::has_initial_threads()) attach_thread();
}

int pause_host(int kind) {
  enum : int { kSoft = 1, kHard, kStopTool };  // omp_pause_resource_t; the last one is hard, too
  if (kind < kSoft || kind > kStopTool) return -1;
  // Whoever is in a region stands on what would be given back.
  if (level() > 0 || in_explicit_task() || in_league() || in_target()) return -1;
  return sched::pause_all(context::self(), kind != kSoft) ? 0 : -1;
}

}  // namespace bosk::omp
