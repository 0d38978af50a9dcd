// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/polling_teams.h"

#include "sched/joint_turn.h"
#include "sched/scheduler.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"

namespace bosk::sched {
namespace {

Together together(const Bubble* team) { return team->together.load(std::memory_order_relaxed); }

/// What was found out does not change what was said.
void set_together(Bubble* team, Together found) {
  if (together(team) != Together::kGang) team->together.store(found, std::memory_order_relaxed);
}

}  // namespace

bool is_of_polling_team(const Thread* thread) {
  const Bubble* team = with_reach(thread->bubble);
  return team != nullptr && together(team) != Together::kNo && together(team) != Together::kGang;
}

void note_polling(Thread* me, uintptr_t program_counter) {
  polling_loops.note(block_of_code(program_counter));
  Bubble* team = team_of(me->bubble);
  if (team != nullptr && together(team) != Together::kPolls) set_together(team, Together::kPolls);
}

void note_computing(Worker* w, Thread* me, uintptr_t program_counter) {
  if (++w->doubts < tuning::kMostDoubts) return;
  w->doubts = 0;
  polling_loops.forget(block_of_code(program_counter));
  if (Bubble* team = team_of(me->bubble)) set_together(team, Together::kNo);
}

bool is_trusted(Worker* w, const Thread* me, uintptr_t program_counter) {
  return is_of_polling_team(me) && !w->probe.watches(me) &&
         polling_loops.has(block_of_code(program_counter)) &&
         ++w->trusted % tuning::kVerifiedEvery != 0;
}

void expect_polling(Worker* w, Bubble* team, uintptr_t function) {
  if (!polling_regions.has(function) || together(team) == Together::kGang) return;
  team->together.store(Together::kExpected, std::memory_order_relaxed);
  if (begin_turn(w, team) == Begun::kYes) call_to_turn(w, team);
  // The first tick comes soon.
  w->current->slice_ns = tuning::kHandOverTickNs;
  set_slice(w->kernel.load(std::memory_order_relaxed), tuning::kHandOverTickNs);
}

void forget_polling(Bubble* team, uintptr_t function) {
  const bool seen = together(team) == Together::kPolls;
  team->together.store(Together::kNo, std::memory_order_relaxed);
  if (!seen) {
    polling_regions.note_quiet(function, base::cycles());
    return;
  }
  polling_regions.note_polling(function, base::cycles());
  expect_turns();
}

}  // namespace bosk::sched
