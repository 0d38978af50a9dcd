// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks along the nest of teams, and pausing.
#include "omp/routines.h"

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

int pause_host(int kind) {
  // omp_pause_soft, omp_pause_hard, omp_pause_stop_tool.
  if (kind < 1 || kind > 3) return -1;
  // Idle workers sleep already; what a region uses cannot be given back.
  return level() > 0 ? -1 : 0;
}

}  // namespace bosk::omp
