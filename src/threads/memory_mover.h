// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whoever decides about threads and their memory together, and moves the memory: behind the policy engine's MemoryHook.
//
//     a bubble was placed, a tick of it ──▶ named  ──┐
//     attached, freed, moved; a PU is idle ──▶ all ──┴─▶ service thread ─▶ decide_memory() ─┬─ threads: closed, placed anew
//     the program says so (bosk_mem_redecide) ───────────▶ its own thread                   └─ memory: moved, or marked
//
// Threads go first: a bubble whose threads are to move is closed, and looked at again when it has been placed; then only
// memory moves. Nothing is moved with a lock of the tree held: who is where is written down under those (memory/users.h),
// the books are asked and pages moved after that. Whoever has moved meanwhile has memory on the wrong node, until somebody
// looks again.
#pragma once

#include "bosk/bosk.h"
#include "policies/engine.h"

namespace bosk::memory {
class AreaTable;
}
namespace bosk::omp {
class TeamUsers;
}
namespace bosk::sched {
struct Thread;
}

namespace bosk::threads {

struct Home;

/// What the home's engine calls.
policies::MemoryHook memory_hook(Home* h);

/// Something is attached: from now on somebody answers the hook. `me`, with preemption on. If there is no thread to be had, one
/// line says so, and threads go to their memory.
void ensure_memory_mover(sched::Thread* me, Home* h);

/// Something is attached to members of OpenMP teams, or a team opens of which that is so: from now on it is looked at now and then.
/// `me`, with preemption on. Does nothing where memory does not come to teams.
void ensure_teams_are_watched(sched::Thread* me);

/// The caller is the thread that answers the hook: it plays no worker, and makes and awaits no threads.
bool on_memory_service();

/// Looks at the outermost open bubble around this one. 1: something moves, or will; 0: nothing; BOSK_ESTALE. `me`: the
/// caller, with preemption on; null: a kernel thread that plays no worker.
int decide_about_memory(sched::Thread* me, bosk_bubble_t bubble, policies::MemoryTrigger trigger);
/// By the same thread, about members of a team: their memory comes, as BOSK_MEMORY_MOVES says or by costs.
void decide_about_team(memory::AreaTable& areas, const omp::TeamUsers& users);
/// In the child: whoever decided is not there.
void forget_deciding_after_fork();

}  // namespace bosk::threads
