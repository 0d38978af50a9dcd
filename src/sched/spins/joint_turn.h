// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Joint turns: members of a team that poll for each other run at the same time.
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

#include "sched/spins/polling_code.h"
#include "sched/worker.h"

namespace bosk::sched {

/// The team whose turn it is on the worker, by its own role; null: nobody's. A hint: the object may be another team's by now.
Bubble* team_in_turn(const Worker* w);

/// A member of the team for the worker to switch to, or a carrier that will start one; null: none can be had.
Thread* take_member_of(Worker* w, Bubble* team);

/// It is in a team whose members were found to poll.
bool is_of_polling_team(const Thread* thread);
/// begin_turn() for the team of `next`, to which the worker will switch.
bool begin_turn_of(Worker* w, const Thread* next);
/// For the team of `me`, which polls and goes on, while others come for its members that nobody has begun. True: they are called.
bool begin_turn_for_ghosts(Worker* w, const Thread* me);
/// Members of `team` poll, it is no larger than the pool, and somebody runs on other workers than the caller's. True: its turn begins;
/// the caller calls the others by call_to_turn() when all of its members can be found.
bool begin_turn(Worker* w, Bubble* team);
void call_to_turn(Worker* w);
/// The worker has come to the end of ghosts of `team`, whose end nobody has been told yet.
inline void note_ended_of(Worker* w, Bubble* team) {
  // Who serves ghosts may not have touched the team's line with this: not for programs whose members never poll.
  if (BOSK_UNLIKELY(!polling_regions.empty()) &&
      team->polls.load(std::memory_order_relaxed) != Polls::kNo)
    w->ended_of = team;
}
/// It has, and has nothing more urgent to do. If the team's turn lasts, its next region is likely to open at once: waits for it.
/// True: it is open, and worth_taking(). False, after some microseconds: the turn is over.
[[gnu::cold]] bool await_next_region(Worker* w, Bubble* team);
/// It brings nothing: on all of its workers.
void end_turn(Worker* w);

/// `me` was found to poll at `program_counter`.
void note_polling(Thread* me, uintptr_t program_counter);
/// May `me`, which is there, be taken to poll without a second look? Not always, so that what is not so is found out.
bool is_trusted(Worker* w, const Thread* me, uintptr_t program_counter);
/// It was looked at closely there, and computed.
void note_computing(Worker* w, Thread* me, uintptr_t program_counter);

[[gnu::cold]] void expect_polling(Worker* w, Bubble* team, uintptr_t function);
/// The team, whose members run `function`, was published on `w`.
inline void note_opening(Worker* w, Bubble* team, uintptr_t function) {
  if (BOSK_UNLIKELY(!polling_regions.empty())) expect_polling(w, team, function);
}

[[gnu::cold]] void forget_polling(Bubble* team, uintptr_t function);
/// Its members have ended.
inline void note_closing(Bubble* team, uintptr_t function) {
  if (BOSK_UNLIKELY(team->polls.load(std::memory_order_relaxed) != Polls::kNo))
    forget_polling(team, function);
}

}  // namespace bosk::sched
