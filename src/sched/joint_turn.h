// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Joint turns: members of a team run at the same time, because they poll for each other (spins/polling_teams.h) or because the
// team is a gang (gangs.h).
//
// Members that hand work to each other by flags get on by one flag a slice if they take turns on one worker, and a tick costs
// as much as many such flags. On as many workers as they are each finds what it waits for at once. So where a team that is no
// larger than the pool is found to poll, and something else waits for its workers, it has them for a turn of some milliseconds;
// then the next team has its turn.
//
// A worker's word says whose turn it has and how long. Who begins a turn claims the words of all workers that he wants, in the order of
// their numbers, so that of two that want the same one has all of them; and sends the others a tick, in which they look for a member
// of that team: one that is ready, or a ghost. A turn is over when its time is, when its region ends and no other
// follows at once, or when a member is found twice in the same state. All of this is a preference: whoever finds no member goes on with what it has.
#pragma once

#include <stdint.h>

#include "sched/worker.h"

namespace bosk::sched {

/// The team whose turn it is on the worker, by its own role; null: nobody's. A hint: the object may be another team's by now.
Bubble* team_in_turn(const Worker* w);

/// A member of the team for the worker to switch to, or a carrier that will start one; null: none can be had.
Thread* take_member_of(Worker* w, Bubble* team);
/// One that is ready, on whatever worker; null: none.
Thread* take_ready_member_of(Worker* w, const Bubble* team);

/// What came of the wish to begin a turn.
enum class Begun : uint8_t {
  kYes,
  kNotNow,  ///< others have their turns on workers that it would need
  kNever,   ///< its members need not run together, or cannot: the pool has too few workers for them
};
/// Members of `team` have to run together, it is no larger than the pool, and somebody runs on other workers than the caller's. kYes: its
/// turn begins, `w` being one of its workers; the caller calls the others by call_to_turn() when all of its members can be found.
Begun begin_turn(Worker* w, Bubble* team);
/// The same, whoever waits, on any worker of the caller's pool.
Begun begin_turn_on(Worker* w, Bubble* team);
/// begin_turn() for the team, or the gang around it, of `next`, to which the worker will switch.
bool begin_turn_of(Worker* w, const Thread* next);
/// For the team of `me`, which polls and goes on, while others come for its members that nobody has begun. True: they are called.
bool begin_turn_for_ghosts(Worker* w, const Thread* me);
/// The other workers of the team's turn look for its members now.
void call_to_turn(Worker* w, const Bubble* team);
/// The worker has left the team's turn, which lasts, and has something of it to run again.
bool rejoin_turn(Worker* w, Bubble* team);
/// It brings nothing: on all of its workers.
void end_turn(Worker* w);
/// The worker has nothing to do in it any more: others may begin theirs here.
void leave_turn(Worker* w);

namespace detail {
extern std::atomic<bool> turns_are_possible;
}
/// Has any team of the process ever had to run together? What the path of every region asks. relaxed: who comes too early does without.
inline bool may_have_turns() { return detail::turns_are_possible.load(std::memory_order_relaxed); }
/// One has.
void expect_turns();
/// The worker has come to the end of ghosts of `team`, whose end nobody has been told yet.
inline void note_ended_of(Worker* w, Bubble* team) {
  // Who serves ghosts may not have touched the team's line with this: not for programs whose members never poll.
  if (BOSK_UNLIKELY(may_have_turns()) &&
      team->together.load(std::memory_order_relaxed) != Together::kNo)
    w->ended_of = team;
}
/// It has, and has nothing more urgent to do. If the team's turn lasts, its next region is likely to open at once: waits for it.
/// True: it is open, and worth_taking(). False, after some microseconds: the turn is over.
[[gnu::cold]] bool await_next_region(Worker* w, Bubble* team);

/// The team that members of `bubble` are in: a region of one thread is none.
Bubble* team_of(Bubble* bubble);

}  // namespace bosk::sched
