/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Hints from OpenMP programs to bosk. They change where and in which order work is done, never what a
 * program computes. All names are weak: compiled with this header, a program runs on any libgomp, and the
 * calls do nothing there. (Code compiled with -fno-pie is to be linked with
 * -Wl,-z,dynamic-undefined-weak; otherwise the linker decides that there is no bosk.) */
#ifndef BOSK_HINTS_H
#define BOSK_HINTS_H

#include <bosk/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The calling member of a parallel region expects `load` work, in any unit that is the same for all
 *  members of its team: its own and that of the regions that it opens (2007, section 4).
 *
 *  Called before it opens a region inside. From then on bosk knows, for this place in the nest:
 *  - where members are at home on the machine: dealt out by load, at the next region that one of them
 *    opens;
 *  - who is started first: of the members that wait for a processor, those with most to do, when the team
 *    is opened the next time;
 *  - with OMP_DYNAMIC=true or BOSK_TEAM_SIZE=load, how many threads the members' regions get that leave it
 *    open: a share of the processors.
 *
 *  A load stays told, for all teams of the same size at that place, until it is told anew; 0 takes it
 *  back. Members that told nothing count as the mean of those that did. Outside of parallel regions,
 *  and in a team of one whose opener is outside of them, there is nobody to share with, and nothing happens.
 *
 *  In Fortran: call bosk_set_load(n), n an integer of 4 bytes, or bosk_set_load_8(n) of 8.
 *
 *  Returns 0; EINVAL if load is negative or larger than 4294967294; ENOMEM if there is no memory to keep
 *  it, or the team has more than 4096 members. */
int bosk_set_load(long load) __attribute__((weak));

/* ---- memory (2009, sections 3.2 and 3.3; docs/memory.md) ----
 *
 * What is attached stays, from region to region, for this place in the nest: for the members by number, and
 * for the whole, of the teams that this thread of this team opens, and so on up to the initial thread, when
 * that ends. Policies see it as bytes per NUMA node. The functions may be called by any thread that is not in
 * a signal handler, return 0 or more or a code of bosk/error.h, and have changed nothing then. */

/** For whom: a number from 0 to 4095 is that member of the next teams that the caller opens. */
enum bosk_who {
  BOSK_ME = -1,       /* the calling member, of the innermost team of more than one */
  BOSK_MY_TEAM = -2,  /* that team as a whole */
  BOSK_NEXT_TEAM = -3 /* the next teams that the caller opens, as a whole */
};

/** What they do with it; the values of enum bosk_mem_use. */
enum bosk_use { BOSK_READS = 1, BOSK_WRITES = 2, BOSK_READS_AND_WRITES = 3 };

/** They work on the `bytes` from `begin`: `use` is an enum bosk_use, `times` how often they will go through
 *  it, 0 if nobody knows. The range becomes an area as in bosk/memory.h; if it is in one already, the area
 *  counts as a whole. Again: the new use counts; 1 us or so, so it may be said in every region. Detach it
 *  before the memory is given back.
 *  BOSK_EINVAL: null, no bytes, no such use, no such `who`; BOSK_ESTATE: BOSK_ME and BOSK_MY_TEAM outside of
 *  regions; BOSK_EUNMAPPED; BOSK_EOVERLAP: a part of the range is in another area; BOSK_ENOMEM: no memory for the
 *  books, or a team of more than 4096. */
int bosk_attach(int who, void* begin, size_t bytes, int use, uint32_t times) __attribute__((weak));

/** They work on it no longer. If it became an area by bosk_attach(), it is none when nobody works on it any
 *  more. BOSK_EINVAL, BOSK_ESTATE: as above; BOSK_ENOAREA: nothing is known there; BOSK_ENOENT: it is not
 *  attached to them. */
int bosk_detach(int who, void* begin) __attribute__((weak));
/** The same for all that is attached to them. BOSK_EINVAL, BOSK_ESTATE. */
int bosk_detach_all(int who) __attribute__((weak));

/** Bytes per node of what is attached to them, as far as known, in bytes[0 ... nodes-1]. Returns how many
 *  nodes there are; 0 without bosk. BOSK_EINVAL: null, no such `who`; BOSK_ESTATE: as above. */
int bosk_footprint(int who, uint64_t* bytes, int nodes) __attribute__((weak));

/** What is attached to them goes to the node of whoever touches it next, page by page (docs/next-touch.md; 2009,
 *  section 3.2). Until then system calls on it may fail with EFAULT where the system gives no privileged
 *  userfaultfd. Returns how many areas were marked. BOSK_EINVAL, BOSK_ESTATE: as above; BOSK_ENOTSUP: none could be:
 *  shared, locked, bound with mbind, a stack in use, or the system has no way to do it; BOSK_ENOMEM. */
int bosk_next_touch(int who) __attribute__((weak));

/** When bosk_redecide() looks; the values of enum bosk_mem_when. */
enum bosk_when {
  BOSK_AT_ONCE = 0,
  BOSK_WHEN_ALL =
      1 /* when as many have called it in this region as there are threads in the team */
};

/** What the calling thread's team, the innermost of more than one, works on is not what it was when its region opened
 *  (2009, section 3.3). Where teams are placed by BOSK_POLICY=memory it is decided now, not only when the next region opens,
 *  whether its members go to their memory, or that comes to them, as BOSK_MEMORY_MOVES says or by costs (docs/policies.md). Members
 *  of a level-1 team with a processor each exchange their seats and go there when they wait next or at a tick, with the teams that
 *  they open from then on; others stay where they are. Memory has moved, or is marked for next-touch, when the call returns.
 *  Nobody waits. Returns 1: something moves; 0: nothing contradicts how things are, it is not everybody's turn yet,
 *  another member is deciding and looks again, no policy minds, or without bosk. BOSK_EINVAL: no such time; BOSK_ESTATE: outside of
 *  regions; BOSK_ENOMEM. */
int bosk_redecide(int when) __attribute__((weak));

/* ---- what members have to do with each other (2005, section 3.1; docs/policies.md, "Relations") ---- */

/** The values of enum bosk_relation. A sequence is not among them: members of a team may meet in barriers. */
enum bosk_team_relation {
  BOSK_TEAM_NONE = 0, /* nothing; takes back what was said */
  BOSK_TEAM_DATA_SHARING =
      1, /* they work on the same data: all on the smallest part of the machine with a processor for each,
                                 a node at most */
  BOSK_TEAM_COLLECTIVE = 2, /* they meet often: there, a processor each */
  BOSK_TEAM_SMT = 3,        /* they run well on the processors of one core */
  BOSK_TEAM_GANG = 4,       /* they run at the same time or not at all */
  BOSK_TEAM_MEMORY_BESIDE_COMPUTE =
      6 /* the first half is bound by memory, the others by computing: they share caches */
};

/** What the members of teams have to do with each other, from the next opening on, at this place in the nest: `who` is
 *  BOSK_NEXT_TEAM, the teams that the caller opens, or BOSK_MY_TEAM. Nested teams obey, whatever the policy: those that fit have their
 *  place on the machine around where their opener is at home, which idle processors outside take nothing of. Level-1 teams are where their threads
 *  are; of these nothing is kept. For programs that cannot be changed: BOSK_RELATION=LEVEL:RELATION.
 *
 *  A gang has turns, of a tick (BOSK_PREEMPT_PERIOD) each; in between others have the processors, and its members do not run at all,
 *  but that they hold up nobody: a gang of more members than there are workers, or without ticks, is none (one line says so).
 *  BOSK_EINVAL: no such relation, or another `who`; BOSK_ENOTSUP: a sequence; BOSK_ESTATE: BOSK_MY_TEAM outside of regions;
 *  BOSK_ENOMEM. */
int bosk_set_relation(int who, int relation) __attribute__((weak));

/** How many members of the calling thread's team, the innermost of more than one, run at this moment, with all that they have opened; the
 *  caller is one. As of some moment during the call. O(workers). 1 outside of regions; 0 without bosk. */
int bosk_running(void) __attribute__((weak));

/* On a libgomp that is not bosk the names are not there. */
#define bosk_set_load(load) (bosk_set_load ? bosk_set_load(load) : 0)
#define bosk_attach(who, begin, bytes, use, times) \
  (bosk_attach ? bosk_attach(who, begin, bytes, use, times) : 0)
#define bosk_detach(who, begin) (bosk_detach ? bosk_detach(who, begin) : 0)
#define bosk_detach_all(who) (bosk_detach_all ? bosk_detach_all(who) : 0)
#define bosk_next_touch(who) (bosk_next_touch ? bosk_next_touch(who) : 0)
#define bosk_redecide(when) (bosk_redecide ? bosk_redecide(when) : 0)
#define bosk_set_relation(who, relation) (bosk_set_relation ? bosk_set_relation(who, relation) : 0)
#define bosk_running() (bosk_running ? bosk_running() : 0)
#define bosk_footprint(who, bytes, nodes) (bosk_footprint ? bosk_footprint(who, bytes, nodes) : 0)

#ifdef __cplusplus
}
#endif

#endif
