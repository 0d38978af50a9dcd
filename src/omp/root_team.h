// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What code on a carrier is in that belongs to no region: a team of one at level 0, as around an initial
// thread. For threads that programs make by bosk.h; regions that they open are nested in nothing.
#pragma once

#include "omp/team.h"

namespace bosk::omp {

struct RootTeam {
  Team* team = nullptr;
  ImplicitTask member;
};

/// Preemption is on. The object stays where it is until leave_root_team().
void enter_root_team(sched::Thread* me, RootTeam* root);
/// Its tasks have ended when this returns.
void leave_root_team(sched::Thread* me, RootTeam* root);

/// What the thread was in, for threads that run on the stack of another.
struct SavedTeam {
  Task* task;
  ImplicitTask* member;
  sched::Bubble* bubble;
};
inline SavedTeam save_team(const sched::Thread* me) { return {me->task, me->member, me->bubble}; }
inline void restore_team(sched::Thread* me, const SavedTeam& saved) {
  me->task = saved.task;
  me->member = saved.member;
  me->set_bubble(saved.bubble);
}

}  // namespace bosk::omp
