// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Goes through the open teams.
#include "threads/remote_teams.h"

#include <new>

#include "base/memory_watch_setting.h"
#include "memory/manager.h"
#include "omp/open_teams.h"
#include "omp/settle_memory.h"
#include "omp/team_users.h"
#include "threads/memory_mover.h"

namespace bosk::threads {
namespace {

struct State {
  const RemoteSource* source = nullptr;
  bool refused = false;
  omp::OpenTeams open;
  omp::TeamUsers users;
};
constinit State state;

/// Counters go by workers of one pool, and a member's ghosts run anywhere: for teams it is asked where pages are.
const RemoteSource* source_for_teams() {
  if (const RemoteSource* told = told_remote_source(); told != nullptr) return told;
  switch (base::memory_watch()) {
    case base::MemoryWatch::kAuto:
    case base::MemoryWatch::kPages:
      return &remote_pages;
    case base::MemoryWatch::kCounters:
    case base::MemoryWatch::kOff:
      break;
  }
  return nullptr;
}

/// What is attached to them, where they are now.
bool ask(memory::AreaTable& areas, const omp::ListedTeam& team, bool refresh) {
  state.users.clear();
  for (uint32_t i = team.first_user; i < team.first_user + team.n_users; ++i) {
    const omp::ListedUser& user = state.open.users[i];
    if (!state.users.add(areas, user.owner, omp::find_node(areas.nodes(), state.open, user),
                         user.threads, refresh))
      return false;
  }
  return true;
}

policies::RemoteAmounts measure(memory::AreaTable& areas, const omp::ListedTeam& team) {
  policies::RemoteAmounts amounts;
  if (!ask(areas, team, false) || state.users.empty()) return amounts;
  policies::MemoryQuestion question{};
  question.areas = &areas;
  state.users.put_into(&question);
  if (!state.source->measure_users(question, &amounts)) amounts = {};
  return amounts;
}

}  // namespace

bool teams_are_watched() {
  const memory::AreaTable* areas = memory::areas();
  return !state.refused && areas != nullptr && areas->nodes().count() > 1 && omp::any_book() &&
         omp::settles_memory();
}

bool begin_with_teams() {
  if (state.source == nullptr) state.source = source_for_teams();
  state.refused = state.source == nullptr || state.source->measure_users == nullptr ||
                  !state.source->begin(nullptr);
  if (policies::remote_counts().source == nullptr)
    policies::note_remote_source(!state.refused            ? state.source->name
                                 : state.source == nullptr ? "counters do not tell teams apart"
                                                           : "of this machine nobody can tell");
  return !state.refused;
}

void look_at_teams(policies::RemoteWatch* watch, LookedAt* looked) {
  memory::AreaTable& areas = *memory::areas();
  if (!omp::list_open_teams(areas.nodes().machine(), &state.open)) return;
  for (uint32_t i = 0; i < state.open.teams.size(); ++i) {
    const omp::ListedTeam& team = state.open.teams[i];
    if (team.n_users == 0) {
      // It is no new one when it opens again.
      watch->keep(team.name);
      continue;
    }
    const policies::RemoteAmounts amounts = measure(areas, team);
    looked->amounts.local += amounts.local;
    looked->amounts.remote += amounts.remote;
    if (!watch->note(team.name, amounts)) continue;
    ++looked->raised;
    const uint64_t before = own_time();
    if (ask(areas, team, true)) decide_about_team(areas, state.users);
    looked->deciding += own_time() - before;
  }
}

void release_looked_at_teams() {
  state.open.release();
  state.users.release();
  state.source = nullptr;
  state.refused = false;
}

void forget_looked_at_teams() {
  // What it had is left where it is.
  new (&state) State;
}

}  // namespace bosk::threads
