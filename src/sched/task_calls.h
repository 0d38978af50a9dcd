// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calling sleeping workers to the queued tasks of a team, as many as there is work.
//
// With preemption off: who is in the middle of a call has somebody's place in the list.
#pragma once

#include <stdint.h>

namespace bosk::sched {

struct Bubble;
struct Pool;
struct Thread;
struct Worker;

/// Wakes up to `count` workers that may run tasks of the team, each of which looks for some. After
/// Bubble::queued_work was set.
void call_for_tasks(Pool* pool, Bubble* team, uint32_t count);
/// Is there one to call? A hint, but for those whom task_call_protocol.h lets rely on it.
bool somebody_sleeps_for(Pool* pool, const Bubble* team);

// ---- the sleeper's side

/// Around a sleep, outside of ParkingSpot's prepare() … sleep() or cancel(). `awaited`: the worker's
/// native thread waits in that team and would run its tasks; null: it does not.
void begin_sleep(Worker* w, const Bubble* awaited);
void end_sleep(Worker* w);

// Worker::called_for is set:

/// The worker does something else first: somebody else is called in its place.
void hand_call_on(Worker* w);
/// Its native thread goes on.
void answer_call_by_native(Worker* w, const Bubble* awaited);
/// It would run `next` (null: look for something): says what it runs.
Thread* answer_call(Worker* w, Thread* next);

}  // namespace bosk::sched
