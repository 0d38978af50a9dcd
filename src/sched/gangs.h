// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gangs: teams whose members run at the same time or not at all (2005 §3.1).
//
// A gang's members run in its joint turns (joint_turn.h) only. Whoever is about to run one of them, because it is next in a
// queue, because it is idle, or because it opens the gang, asks may_run(), which begins a turn if there are as many workers
// as the gang has members that are in nobody else's. Else the member stays where it is, and a worker that has nothing
// else looks again until it may, or one of those turns is over:
//
//     worker 0   A A C C B B A
//     worker 1   A A C C B B A      A and B have two members, C three
//     worker 2   . . C C . . .      here only what is in no gang may run
//
// A turn lasts so many ticks; its worker is the gang's until then, unless it has found nothing of the gang to run for a
// part of the turn (its member has ended or waits): then it leaves the turn, and rejoins it when it finds something again.
//
// Nobody starves. The gang that has waited longest is first in line: whenever another one wishes to begin a turn, the first
// in line begins its own if it can; if it cannot, at most kMostPassed turns of others begin before all that end are kept for it.
// A turn ends by the clock, so what is kept comes together after the longest one. Nothing hangs on it either: a gang that
// is first in line for a hundred turns all the same, or has become too large for its pool, is none any more.
//
// All of it is relaxed, as turns are: words that others may have changed meanwhile cost a turn that brings nothing, never a
// member that is lost, for where members are is not said here.
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/bubble.h"

namespace bosk::sched {

struct Thread;
struct Worker;

namespace detail {
extern std::atomic<bool> gangs_exist;
}
/// Has there been any in this process? relaxed: who comes too early runs a member alone.
inline bool gangs_exist() { return detail::gangs_exist.load(std::memory_order_relaxed); }

/// Can the thread's pool have gangs of so many? It needs ticks, and a worker for each member: those that are missing are made, or waited
/// for. Preemption is off before and after, and may be on in between.
bool can_be_gang(Thread* me, uint32_t members);
/// By the opener, before anybody sees the team: each of its turns lasts so many ticks.
void make_gang(Bubble* team, uint32_t ticks);
/// The innermost gang around `bubble`, itself included; null: none.
Bubble* gang_of(Bubble* bubble);

[[gnu::cold]] bool may_run_of_gang(Worker* w, Bubble* gang);
/// The same for a member that has not begun: those that can run on this worker only, and wait there, are not to wait for it.
[[gnu::cold]] bool may_begin_of_gang(Worker* w, Bubble* gang);
/// May the worker, whose role is the caller's, begin something of `bubble` now? True: the caller takes it, if it is still there, and
/// then calls call_gang_if_due().
inline bool may_run(Worker* w, Bubble* bubble) {
  if (BOSK_LIKELY(!gangs_exist())) return true;
  Bubble* gang = gang_of(bubble);
  return gang == nullptr || may_begin_of_gang(w, gang);
}
/// May it go on with a thread that is ready?
[[gnu::cold]] bool may_run_of_gangs(Worker* w, const Thread* thread);
inline bool may_run(Worker* w, const Thread* thread) {
  return BOSK_LIKELY(!gangs_exist()) || may_run_of_gangs(w, thread);
}
[[gnu::cold]] void call_gang_if_due(Worker* w);
/// For a tick of a member of a gang that is not in its turn on the worker; `turn`: whose turn it is there, if anybody's. Others come
/// before the gang's turn begins anew; of those that are in no gang each has a tick. `me`: it goes on, in its turn; else who does, and
/// the gang's other members are told by call_gang_if_due() that they run alone.
[[gnu::cold]] Thread* next_after_turn(Worker* w, Thread* me, Bubble* turn);
/// By a worker that has nothing else to do: something is there that it may not run yet, for which nobody will call it. True: it has slept
/// for some microseconds, so that others get on where workers outnumber CPUs.
[[gnu::cold]] bool nap_if_refused(Worker* w);

/// pop_ready() where there are gangs: a thread of the one whose turn it is, from any queue, else the first of the worker's own that may run.
[[gnu::cold]] Thread* pop_ready_of_gangs(Worker* w);
/// The gang whose turn it is on the worker; null: none's.
Bubble* gang_in_turn(const Worker* w);

/// By the opener of a gang that has been published: returns when it may begin. Preemption is off before and after, and on in
/// between; it may be another worker then.
[[gnu::cold]] void wait_for_turn(Thread* me, Bubble* gang);
/// Its members have ended.
[[gnu::cold]] void close_gang(Bubble* gang);

/// Threads in `team`, and in what these have opened, that workers of the caller's pool run at this moment. A figure.
uint32_t count_running(Thread* me, const Bubble* team);

// For begin_turn().

/// May a turn of `team` begin before that of the gang that is first in line?
bool may_pass_line(Worker* w, Bubble* team);
/// It has.
void note_passed_line(Worker* w, const Bubble* team);

}  // namespace bosk::sched
