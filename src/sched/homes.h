// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers at home, although nobody is bound: docs/binding.md.
//
// Who owns what. Pool::seats is written by who has set Pool::seating and read by all (release, acquire; a
// table is never changed and lives as long as the pool). Worker::home belongs to whoever plays the worker.
// Worker::look_at and look_due are hints: relaxed. One pool of the process has seats at a time.
#pragma once

#include "base/cpu.h"
#include "sched/worker.h"

namespace bosk::sched {

/// With preemption on, before a level-1 region of `team` natives, at the first one and then about every
/// 20 ms: gives the pool seats, or others when its teams have changed. If the caller is the pool's initial
/// thread, as for all regions it is, it also looks after worker 0 and tells the others to look. Does
/// nothing where workers have no homes.
void keep_seats(Pool* pool, uint32_t team);
/// The parts of the machine in which members 0 … team-1 have their seats (sched/seats.h). False: there are no seats for such a team.
bool parts_of_members(const Pool* pool, const topology::Machine& machine, uint32_t team,
                      uint32_t* part_of);
/// With preemption on, before or in a level-1 region of `team` natives: member i gets the seat of part `part_of[i]`, a permutation, and
/// those who help it sit around it. They go there when they wait next or at a tick, as to their homes. kStay: nothing has changed. The
/// workers have no such seats; or run threads of bosk, which go by the numbers of PUs; or the program has bound one of them, and then
/// nobody moves; or the pool has had too many orders. kLater: that cannot be told just now. O(PUs), a system call for each worker.
enum class Exchange : uint8_t { kDone, kStay, kLater };
Exchange exchange_seats(Pool* pool, uint32_t team, const uint32_t* part_of);
/// The pool that has seats: until let_go_of_seats() it does not end, and nobody else changes them. Null: there is none, or somebody is
/// about to change them. By kernel threads that play no worker, soon, for its end waits for them.
Pool* hold_seats();
void let_go_of_seats(Pool* pool);
/// exchange_seats() by who holds them. Not once that has been called (Pool::seats_are_told): who calls it knows what we only guess.
Exchange exchange_held_seats(Pool* pool, uint32_t team, const uint32_t* part_of);
/// With preemption on. Memory has come to where the pool's workers have their seats, or is there: they look after their
/// homes soon, and do not leave their nodes any more if somebody is in the way. Until the pool ends; nothing without homes.
void keep_nodes(Pool* pool);
/// The same workers are in one long region, in which they neither wait nor switch: their ticks look, until it ends. Any kernel
/// thread that keeps the workers there.
void look_at_ticks(Pool* pool, uint32_t workers);
/// The kernel's number of the node that the calling thread's worker has its seat on and goes back to (keep_nodes), wherever it is just
/// now; topology::kNone: there is none, or somebody has bound the thread. Also in handlers of signals.
uint32_t kept_node_of_caller();
/// The pool's initial thread leaves it.
void give_seats_up(Pool* pool);
/// Nobody reads them any more.
void free_seats(Pool* pool);
void forget_seats_after_fork();

/// By a new worker's own kernel thread: it begins on its seat. False: it has none.
bool begin_at_seat(Worker* w);
/// By the kernel thread that plays the worker, with preemption off: looks where it is and what it has
/// waited for, and moves if it should be elsewhere. Some system calls.
void look_after_home(Worker* w);
/// By a worker that has nothing to do, or at a tick, where nodes are kept (keep_nodes): its waits may all be too short to come to look_if_due(), and if it
/// is on another node than its seat it looks at once, however soon after its last look; but not more often than every .2 ms. Without a
/// system call, unless it looks.
void look_where_nodes_are_kept(Worker* w);
/// For a worker that is on `cpu` and should not be: it goes home, if that is elsewhere. Where nodes are kept, and it is at
/// home there, to another CPU of its node.
bool go_home_from(Worker* w, uint32_t cpu);

/// By a worker that has nothing to do: at most one look in 20 ms.
inline void look_if_due(Worker* w, uint64_t now) {
  if (BOSK_UNLIKELY(now >= w->look_at.load(std::memory_order_relaxed))) look_after_home(w);
}
/// The same where nobody has read the clock: it is read only if the worker has a home.
inline void look_if_due(Worker* w) {
  const uint64_t at = w->look_at.load(std::memory_order_relaxed);
  if (at != kNeverLooks && base::cycles() >= at) look_after_home(w);
}

}  // namespace bosk::sched
