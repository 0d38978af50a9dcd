// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/nest_place.h"

#include <bosk/error.h>

#include "omp/loads.h"
#include "omp/team.h"

namespace bosk::omp {

uint64_t NestPlace::key() const { return place_key(outer, index, 0); }

ContentionGroup* NestPlace::group() const { return &root_team(outer)->contention; }

int find_place(const sched::Thread* me, Addressee who, NestPlace* place) {
  Team* team = me->member->team;
  uint32_t index = me->member->index;
  if (who.whose == Whose::kNextTeam || who.whose == Whose::kNextMember) {
    if (who.whose == Whose::kNextMember && who.member >= kMostWithMemory) return BOSK_EINVAL;
    place->outer = team;
    place->index = index;
    if (who.whose == Whose::kNextMember) place->member = who.member;
    return BOSK_OK;
  }
  // A team of one is its opener.
  while (team->size == 1 && team->level != 0) {
    index = team->opener_index;
    team = parent_team(team);
  }
  if (team->level == 0) return BOSK_ESTATE;
  if (team->size > kMostWithMemory) return BOSK_ENOMEM;
  place->outer = parent_team(team);
  place->index = team->opener_index;
  place->open = team;
  if (who.whose == Whose::kCaller) place->member = index;
  return BOSK_OK;
}

}  // namespace bosk::omp
