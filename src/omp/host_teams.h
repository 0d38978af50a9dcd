// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Leagues on the host: the teams construct, its teams run one after the other by their initial thread.
#pragma once

#include <stdint.h>

namespace bosk::omp {

/// Which team of which league the calling thread's contention group runs.
struct LeaguePosition {
  uint32_t team_num = 0;
  uint32_t num_teams = 1;
};
LeaguePosition league_position();
/// It runs one.
bool in_league();

/// Runs fn(data) once per team. num_teams 0 and thread_limit 0: the ICVs decide.
void run_league(void (*fn)(void*), void* data, uint32_t num_teams, uint32_t thread_limit);

/// The teams construct inside a target region, as a loop whose body the compiler keeps: true while
/// there is a team to run. `first` starts a league of `num_teams`.
bool next_team(uint32_t num_teams, uint32_t thread_limit, bool first);

/// GCC before 12 in a target region: one team, only the limit counts.
void limit_threads(uint32_t thread_limit);

}  // namespace bosk::omp
