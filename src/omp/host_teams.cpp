// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Leagues: the team at the root of each contention group knows which one it runs.
#include "omp/host_teams.h"

#include "omp/environment.h"
#include "omp/team.h"

namespace bosk::omp {
namespace {

uint32_t limit_for_teams(uint32_t clause) {
  return clause != 0 ? clause : teams_thread_limit_icv();
}

/// Applies the limit; returns the one that was in force.
uint32_t exchange_thread_limit(Task* task, uint32_t limit) {
  const uint32_t outer = task->icvs->thread_limit;
  if (limit != 0 && limit != outer) own_icvs(task)->thread_limit = limit;
  return outer;
}

void restore_thread_limit(Task* task, uint32_t limit) {
  if (task->icvs->thread_limit != limit) own_icvs(task)->thread_limit = limit;
}

}  // namespace

static const ContentionGroup* known_group() {
  const sched::Thread* me = context::self();
  if (me == nullptr || me->member == nullptr) return nullptr;
  return &root_team(me->member->team)->contention;
}

bool in_league() {
  const ContentionGroup* group = known_group();
  return group != nullptr && group->in_league;
}

LeaguePosition league_position() {
  const ContentionGroup* group = known_group();
  if (group == nullptr) return {};
  return {group->team_num, group->num_teams};
}

void run_league(void (*fn)(void*), void* data, uint32_t num_teams, uint32_t thread_limit) {
  // One team after the other, so the number is free; libgomp's 3 where nobody asks, so that a program
  // that prints or divides by it sees what it is used to.
  constexpr uint32_t kUnasked = 3;
  if (num_teams == 0) num_teams = num_teams_icv();
  if (num_teams == 0) num_teams = kUnasked;
  Task* task = current_task();
  ContentionGroup& group = root_team(task->team)->contention;
  const LeaguePosition before{group.team_num, group.num_teams};
  const bool was_in_league = group.in_league;
  const uint32_t limit = exchange_thread_limit(task, limit_for_teams(thread_limit));
  group.in_league = true;
  group.num_teams = num_teams;
  for (uint32_t team = 0; team < num_teams; ++team) {
    group.team_num = team;
    fn(data);
  }
  restore_thread_limit(task, limit);
  group.team_num = before.team_num;
  group.num_teams = before.num_teams;
  group.in_league = was_in_league;
}

bool next_team(uint32_t num_teams, uint32_t thread_limit, bool first) {
  Task* task = current_task();
  ContentionGroup& group = root_team(task->team)->contention;
  if (first) {
    group.outer_thread_limit = exchange_thread_limit(task, limit_for_teams(thread_limit));
    group.num_teams = num_teams != 0 ? num_teams : 1;
    group.team_num = 0;
    return true;
  }
  if (group.team_num + 1 < group.num_teams) {
    ++group.team_num;
    return true;
  }
  restore_thread_limit(task, group.outer_thread_limit);
  group.team_num = 0;
  group.num_teams = 1;
  return false;
}

void limit_threads(uint32_t thread_limit) {
  if (thread_limit != 0) own_icvs(current_task())->thread_limit = thread_limit;
}

}  // namespace bosk::omp
