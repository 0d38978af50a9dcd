// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that have ended and may run queued work of their team once more.
//
// A task may spin for an earlier one, and that one needs a member: every member of the team that does
// nothing must be found, or the program hangs. Members that wait are in their worker's groups; those that
// have ended are noted here, by the worker on which they did:
//
//   ended            noted when
//   a native         its part of the region is over (Worker::ended_native; it alone may run as itself)
//   ghosts           the thread that ran them, one after the other, has found no more of them
//   ghosts, so far   a tick finds that thread busy in a later ghost, and work queued: Serving
//   who waits below  the same tick: the member on whose stack these ghosts run
//
// All but the tick's part is written by the role, with preemption off; a tick is on the kernel thread of
// the role, too. Nothing is forgotten while its region lasts: what does not fit into the newest record goes
// to a list, from which records of regions that are over are dropped.
#pragma once

#include <stdint.h>

#include "sched/bubble.h"

namespace bosk::sched {

struct Worker;
struct Thread;

/// Members of one team, of 64 that follow each other: as any of these the worker may help the team while
/// the region lasts, as each once at a time.
struct EndedMembers {
  Bubble* bubble = nullptr;  ///< null: none
  uint64_t life = 0;         ///< the region, see Bubble::life()
  uint64_t mask = 0;         ///< bit i: member base + i
  uint32_t base = 0;         ///< of ghosts a multiple of 64
  EndedMembers* next = nullptr;
};

/// A member that waits on its own stack while ghosts of its team run there.
struct WaitsBelow {
  uint32_t index;
  bool lent = false;  ///< it was noted as one that may help; take_back_member()
};

/// A thread that runs ghosts of a team one after the other; on its stack, innermost in Thread::serving, put there
/// by who calls Bubble::serve. What it has served is not noted anywhere until it is done; a tick may be earlier.
struct Serving {
  Bubble* bubble;
  Serving* outer;
  WaitsBelow*
      below;  ///< null: no member of the team waits on this stack, or none that others may stand for
  Served served;
  uint64_t noted = 0;  ///< by ticks, of served.mask
  // Identities of the ghosts, not yet held by the team: preemption is off while they change.
  context::Identity* first = nullptr;
  context::Identity* last = nullptr;
};

/// Whole windows of 64 that have passed go here.
[[gnu::cold]] void note_full_window(Thread* me, Serving* serving);

/// A ghost has ended, and from now on a tick may let others help as that member: where it has an identity of its own,
/// preemption is off until that has left the thread. `mask`: the caller's own copy of the one that ticks read, 0 before
/// the first.
inline void note_served(Thread* me, Serving* serving, uint32_t index, uint64_t* mask) {
  if (BOSK_UNLIKELY((index ^ serving->served.base) >= 64)) {
    note_full_window(me, serving);
    serving->served.base = index & ~63u;
    *mask = 0;
  }
  *mask |= uint64_t{1} << (index & 63);
  serving->served.mask = *mask;
}

/// What ticks have not noted of it.
inline uint64_t not_noted(const Serving& serving) { return serving.served.mask & ~serving.noted; }

// ---- the worker's; preemption is off

[[gnu::cold]] void note_members(Worker* w, Bubble* bubble, uint64_t life, uint32_t base,
                                uint64_t mask);
/// In a tick of the thread: what it serves, where work of these teams is queued.
[[gnu::cold]] void note_serving(Worker* w, Thread* me);
/// Somebody was to stand for the member. True: nobody does, or will.
bool take_back_member(Worker* w, Bubble* bubble, uint32_t index);

/// Work is queued in the team of members that have ended, and helpers may come. A hint: the bubble may
/// be another team's by now.
inline bool may_help_again(const EndedMembers& ended) {
  const Bubble* bubble = ended.bubble;
  return bubble != nullptr && ended.mask != 0 &&
         bubble->queued_work.load(std::memory_order_relaxed) != 0 && bubble->helpers.is_open();
}
/// The worker's ghosts that may help; null: none.
EndedMembers* ended_that_may_help(Worker* w);

/// Helps a team as one of these, which are the worker's.
void help_team(Thread* me, EndedMembers* ended);
/// Helps as the native thread, whose worker it is.
void help_team_as_native(Thread* me);

/// None is noted any more; and their memory, when the worker ends.
void forget_ended_members(Worker* w);
void free_ended_members(Worker* w);

}  // namespace bosk::sched
