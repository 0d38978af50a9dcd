// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns: a thread that could go on lets others of its pool run, because a tick says so (preemption.cpp) or the program does,
// by sched_yield() (give_way()).
#pragma once

#include "sched/worker.h"

namespace bosk::sched {

struct Thread;

// ---- preemption is off

/// Has the worker anything to run but the thread that it runs?
bool something_else(Worker* w);
/// What to switch to instead of the thread that runs. Ghosts that were never started and threads that are ready take turns,
/// so that neither starves the other. Null: nothing can run at once.
Thread* next_in_turn(Worker* w);
/// A thread that waits on another worker's queue although this one has no queue at all: both threads
/// then get the same share of time.
Thread* fair_share(Worker* w);
/// The ghosts that the worker would begin at a tick are another node's, too (adoption.h), and left to that one: seven times of eight, for
/// nobody knows when it comes.
bool leaves_ghosts(Worker* w);
/// And there is nothing else.
bool leaves_all_to_adopter(Worker* w);
/// By whoever runs on the worker after it: the thread goes on when those before it have had their turns. A worker that has
/// nothing to do may take it, or one of these.
void await_turn(Thread* thread, Worker* w);

/// A handler of the program's on its alternate stack: it cannot be left, for the next signal on this kernel thread would overwrite it.
bool on_alternate_stack();

// ---- preemption is on

/// The calling thread, which has nothing to do at the moment and goes on later, perhaps on another worker: one turn for somebody
/// of the pool. Members that nobody has begun begin, on stacks and identities of their own; no task is run on this thread. Also from
/// a signal handler, as long as that is on the thread's own stack. False: nobody has anything to run here, or the thread
/// cannot be left.
bool give_way(Thread* me);
/// The same for who has to wait and has nowhere to be found but in the queue.
bool let_others_run(Thread* me);
/// The worker of the calling thread, which is in an open region or explicit, has nothing else to run; of what other workers have nothing
/// is known. False where it cannot be told.
bool is_alone(const Thread* me);

}  // namespace bosk::sched
