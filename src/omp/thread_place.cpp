// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places of members, computed anew each time: a ghost keeps no entry anywhere.
#include "omp/thread_place.h"

#include <pthread.h>

#include "omp/environment.h"
#include "omp/host_teams.h"
#include "omp/routines.h"

namespace bosk::omp {

MemberPlace place_of(const ImplicitTask* member) {
  const PlaceList& places = *process_icvs().places;
  if (places.count() == 0) return {0, 0, 0};
  // An initial thread has the whole list, and is at its first place.
  if (member == nullptr || member->team->partition_count == 0) {
    return {0, 0, places.count()};
  }
  const Team& team = *member->team;
  const PlaceLayout layout(team.bind, team.partition_first, team.partition_count, team.opener_place,
                           team.size);
  return layout.of(member->index);
}

MemberPlace current_place() { return place_of(known_member()); }

void fill_thread_values(AffinityValues* values, char* host) {
  const LeaguePosition league = league_position();
  values->team_num = league.team_num;
  values->num_teams = league.num_teams;
  values->nesting_level = level();
  values->thread_num = thread_num();
  values->num_threads = num_threads();
  const int at = level();
  values->ancestor_tnum = at == 0 ? -1 : ancestor_thread_num(at - 1);
  values->native_thread_id = pthread_self();
  const MemberPlace place = current_place();
  const ProcessIcvs& process = process_icvs();
  values->cpus = place.partition_count == 0 ? process.all_cpus->ranges(0)
                                            : process.places->ranges(place.place);
  fill_process_values(values, host);
}

}  // namespace bosk::omp
