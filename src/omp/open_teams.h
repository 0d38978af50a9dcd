// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams that are open and have memory, for a thread that looks at them from outside (watched_teams.cpp).
//
//     opener, member that attaches ── OpenState of the place ──▶ list_open_teams(), under the lock of all books
//                                                                   ▼
//                                       copies: who owns what, whose workers these are; asked for areas and CPUs after that
//
// Lifetime. Whoever looks never touches a team: what he needs of it is copied to its place's OpenState when it opens. Places
// stay until their initial thread ends, which takes their book out of the list first, under the lock that who looks holds. So do
// pools: an initial thread's ends after its book. The workers of a pool may go while no region is open, in a pause. Who
// looks enters the pool (sched::enter_pool) and then asks again whether the team is open. Either it is not, or the close of the
// region, without which no pause begins, comes after that, and the pause sees the visitor and waits for it: all four accesses
// (visitor, size here; size 0, visitors there) are seq_cst, and the two of the other side are in that order.
//
// What is copied may be old at once: a team that has ended, a member that is elsewhere. Owners are numbers that are never
// used again, of those that have gone the books know nothing, and of areas they tell the serial. So all that can happen is
// that memory comes to where somebody was a moment ago.
#pragma once

#include "base/mapped_array.h"
#include "locality/users.h"
#include "memory/area.h"
#include "omp/team_memory.h"

namespace bosk::omp {

struct MemoryBook;
struct Team;

/// The first memory of a contention group; with preemption on.
void list_book(sched::Thread* me, MemoryBook* book);
/// Nobody looks at it any more. Preemption is off, or the caller has no ticks.
void unlist_book(MemoryBook* book);
/// How many there have been in this process; and whether there are any now.
uint64_t books_listed();
bool any_book();

/// Its members are about to start, or one of them has attached something. False: nothing is attached, and nothing
/// was done. `natives` of its members run on workers of their own. With preemption on.
bool show_open_team(sched::Thread* me, Team* team, uint32_t natives);
/// By its opener, when all have ended.
void hide_open_team(Team* team);

/// An owner of memory in a team.
struct ListedUser {
  memory::OwnerId owner;
  uint32_t node;     ///< where it is at home; memory::kNoNode: nobody knows, or its workers say so
  uint32_t threads;  ///< that use what it owns
  uint32_t first_worker;
  uint32_t n_workers;
};
struct ListedWorker {
  int tid;        ///< 0: it has no kernel thread
  uint32_t node;  ///< of its seat
};
/// A place with memory.
struct ListedTeam {
  memory::OwnerId name;  ///< of the team as a whole
  uint32_t first_user;
  uint32_t n_users;  ///< 0: no team is open there
};
struct OpenTeams {
  base::MappedArray<ListedTeam> teams;
  base::MappedArray<ListedUser> users;
  base::MappedArray<ListedWorker> workers;
  void release() {
    teams.release();
    users.release();
    workers.release();
  }
};
/// All places that have memory. By a kernel thread that plays no worker. False: out of memory.
bool list_open_teams(const topology::Machine& machine, OpenTeams* found);
/// The same of one place, by a member of the team that is open there; with preemption on.
bool list_open_team(sched::Thread* me, const topology::Machine& machine, TeamMemory* memory,
                    OpenTeams* found);

/// Adds what is attached to the team, by where its threads are. `refresh`: the kernel is asked first where the pages are. Without any
/// lock, with preemption on. False: out of memory.
bool add_users(memory::AreaTable& areas, const OpenTeams& found, const ListedTeam& team,
               bool refresh, locality::Users* users);
/// Where the user's threads are, by what the kernel says of their CPUs: a thread that is bound is where it is bound, another
/// where it has its seat. Without any lock.
memory::NodeIndex find_node(const memory::MachineNodes& nodes, const OpenTeams& found,
                            const ListedUser& user);

/// In the child: of the books only this one, of whose teams none is open, is left; null: none.
void open_teams_forget_after_fork(MemoryBook* left);

}  // namespace bosk::omp
