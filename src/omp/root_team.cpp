// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams of one for threads that are no members.
#include "omp/root_team.h"

#include <stdlib.h>

#include <new>

#include "base/message.h"
#include "omp/environment.h"
#include "omp/region.h"

namespace bosk::omp {

Team* make_team() {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(Team), sizeof(Team)) != 0)
    base::gomp_fatal("Out of memory allocating %zu bytes", sizeof(Team));
  return new (memory) Team;
}

void enter_root_team(sched::Thread* me, RootTeam* root) {
  sched::Worker* w = sched::enter(me);
  auto* team = static_cast<Team*>(w->free_bubbles);
  if (BOSK_LIKELY(team != nullptr)) {
    w->free_bubbles = team->next_free;
  } else {
    sched::leave(me);
    team = make_team();
    w = sched::enter(me);
  }
  root->team = team;
  team->function = nullptr;
  team->data = nullptr;
  team->opener_task = nullptr;
  team->opener_index = 0;
  team->parent.store(nullptr, std::memory_order_relaxed);
  team->opener = me;
  team->home.store(w, std::memory_order_relaxed);
  // Not 0, which says that an initial thread is outside of all regions.
  team->depth.store(1, std::memory_order_relaxed);
  team->level = team->active_level = 0;
  team->size = 1;
  team->native_count = 1;
  team->flat = false;
  team->at_end.store(0, std::memory_order_relaxed);
  team->inside_region = team->shows_affinity = false;
  team->partition_first = team->partition_count = team->opener_place = 0;
  team->bind = Bind::kFalse;
  team->icvs = process_icvs().initial;
  team->contention.reset();
  set_recycled_state(team);
  set_up_member(me, team, &root->member, 0, nullptr);
  sched::leave(me);
}

void leave_root_team(sched::Thread* me, RootTeam* root) {
  Team* team = root->team;
  end_member(me, &root->member);
  if (BOSK_UNLIKELY(team->workshares.used)) workshare_reset(team);
  sched::Worker* w = sched::enter(me);
  me->task = me->member = nullptr;
  me->set_bubble(nullptr);
  team->next_free = w->free_bubbles;
  w->free_bubbles = team;
  sched::leave(me);
}

}  // namespace bosk::omp
