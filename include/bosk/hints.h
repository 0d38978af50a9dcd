/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Hints from OpenMP programs to bosk. They change where and in which order work is done, never what a
 * program computes. All names are weak: compiled with this header, a program runs on any libgomp, and the
 * calls do nothing there. (Code compiled with -fno-pie is to be linked with
 * -Wl,-z,dynamic-undefined-weak; otherwise the linker decides that there is no bosk.) */
#ifndef BOSK_HINTS_H
#define BOSK_HINTS_H

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

/* On a libgomp that is not bosk the name is not there. */
#define bosk_set_load(load) (bosk_set_load ? bosk_set_load(load) : 0)

#ifdef __cplusplus
}
#endif

#endif
