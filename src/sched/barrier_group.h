// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The short way through a barrier, inlined into the OpenMP layer: the worker has a member of the same
// team to run next, and the one that arrives waits in the worker's group. Each call level between the
// barrier and the switch costs a mispredicted return when the member goes on.
#pragma once

#include "sched/scheduler.h"

namespace bosk::sched {

inline bool may_go_on(const Bubble* bubble, uint32_t epoch, bool cancellable) {
  return bubble->meeting.is_open(epoch) ||
         (cancellable && bubble->cancelled.load(std::memory_order_acquire) != 0);
}

inline void append(BarrierGroup* group, Thread* me) {
  me->link = nullptr;
  *group->last = me;
  group->last = &me->link;
}

/// What the worker runs next if that is a member of `bubble`, or a carrier that finds ghosts of it;
/// else null.
inline Thread* team_mate_to_run(Worker* w, Bubble* bubble) {
  if (w->native_condition.is_set()) return nullptr;
  if (w->ready.empty_hint())
    return bubble->ghosts.left() > 0 || !w->share.empty() ? take_carrier(w) : nullptr;
  base::SpinGuard guard(w->ready.lock);
  auto* first = static_cast<Thread*>(w->ready.first);
  if (first == nullptr || first->bubble != bubble) return nullptr;
  w->ready.remove_locked(first);
  return first;
}

/// The group is private to the worker, so the thread may be on it before it has left its stack.
inline void switch_in_group(Thread* me, BarrierGroup* group, Thread* next) {
  Worker* w = me->worker;
  append(group, me);
  add_seen(&w->counts.blocked);
  switch_to(w, me, next);
}

/// A member that found its own tasks done arrives at barrier `epoch`, if the team's group is the
/// worker's newest and a team mate runs next, and returns when it is run again: true. Else false, and
/// nothing has happened.
inline bool wait_behind_team_mate(Thread* me, Bubble* bubble, uint32_t epoch) {
  Worker* w = me->worker;
  BarrierGroup* group = w->groups;
  if (group == nullptr || group->bubble != bubble || group->epoch != epoch ||
      bubble->queued_work.load(std::memory_order_relaxed) != 0)
    return false;
  Thread* next = team_mate_to_run(w, bubble);
  if (next == nullptr) return false;
  if (group->unreported++ == 0) ++w->unreported_groups;
  switch_in_group(me, group, next);
  return true;
}

}  // namespace bosk::sched
