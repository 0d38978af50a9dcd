/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Threads and bubbles: the thread library of bosk.
 *
 * A *thread* is a user-level thread: it costs a record until it starts, and a stack only while it has
 * one. A *bubble* is a set of threads and bubbles that belong together; it says so to the scheduler,
 * which puts what is in one bubble close together on the machine, lets it out as deep in the machine as
 * the policy wants, and can gather it again. The ideas are those of S. Thibault, "A Flexible Thread
 * Scheduler for Hierarchical Multiprocessor Machines" (2005), here "2005", and S. Thibault, R. Namyst,
 * P.-A. Wacrenier, "Building Portable Thread Schedulers for Hierarchical Multiprocessors" (2007).
 * docs/threads.md tells it in order, docs/policies.md what policies there are.
 *
 * Every function may be called by any thread of the process at any time (not from signal handlers):
 * threads made here, members of OpenMP regions, main and other pthreads. Unless it says otherwise a
 * function is thread-safe and returns 0 or one of the codes of bosk/error.h, and changes nothing when
 * it returns a code. Handles are numbers in the form of pointers; one that is null or names nothing
 * (any more) gives BOSK_ESTALE, never a crash. A forked child has none of its parent's threads and
 * bubbles: there the parent's handles name nothing, whether those had ended or not, and bosk_thread_self()
 * is null in the thread that forked. All threads can return BOSK_ENOTSUP where user-level threads cannot
 * be had (docs/design/identity.md says where).
 *
 * Loads are in a unit of the program's own: only their proportions count. Levels of the machine are
 * named as by `bosk topo`: "machine", "package", "node", "l3", "l2", "core", "pu" and synonyms.
 */
#ifndef BOSK_BOSK_H
#define BOSK_BOSK_H

#include <stddef.h>
#include <stdint.h>

#include <bosk/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bosk_thread* bosk_thread_t;
typedef struct bosk_bubble* bosk_bubble_t;

/** "Nobody told": a load, a time, a number of a worker or domain. Never 0, which is a value. */
#define BOSK_UNKNOWN UINT32_MAX
#define BOSK_UNKNOWN_64 UINT64_MAX

/** Characters of a name that are kept, the final NUL included; what is longer is cut. */
#define BOSK_NAME_LENGTH 16

/** What bounds a thread's speed. Where a bubble's relation is BOSK_RELATION_MEMORY_BESIDE_COMPUTE, its threads are put
 *  beside those of the other kind; of threads of which nobody told, the first half of the bubble, in order of insertion,
 *  counts as bound by memory (2007 §3.1). */
enum bosk_demand { BOSK_DEMAND_UNKNOWN = 0, BOSK_DEMAND_COMPUTE = 1, BOSK_DEMAND_MEMORY = 2 };

/* ---- threads -------------------------------------------------------------------------------------- */

/** What a thread is made with. Fill it with bosk_thread_attr_init() first, then change what matters:
 *  later versions add fields at the end, and the library goes by `size`. */
typedef struct bosk_thread_attr {
  size_t size;          /* set by bosk_thread_attr_init() */
  const char* name;     /* for statistics and messages; copied. Default: none */
  bosk_bubble_t bubble; /* that it is born in. Default: none */
  /** The level of the machine on whose domain around the caller it is put first: any processor below
   *  may run it, no other. For threads in no bubble; a bubble's go where it lets them out. Default
   *  (NULL): the machine. */
  const char* level;
  /** Strength of affinity: whenever it is ready again it is put on the domain of this level around the
   *  processor that it ran on last. "pu" never leaves that processor again, "node" its NUMA node.
   *  Default (NULL): where its bubble let it out, or where it was put first (2005 §3.2). */
  const char* affinity;
  uint32_t
      load; /* expected work; policies balance by it (2007 §2). Default: BOSK_UNKNOWN, counts as 1 */
  int32_t priority;    /* higher runs first, strictly (2005 §3.3.2). Default: 0 */
  int32_t preemptible; /* 0: runs until it waits, yields or ends. Default: 1 */
  /** Not 0: it needs no identity of its own. It may run on the stack, with the thread-local variables,
   *  errno and pthread_self() of whoever joins it, and leave traces there. For those who want millions
   *  of threads that compute. Default: 0 */
  int32_t light;
  int32_t detached; /* not 0: nobody joins it. Default: 0 */
  /** Not 0: it is not started before bosk_thread_wake(), or before the bubble it is inserted into lets
   *  it out. Default: 0 */
  int32_t asleep;
  int32_t demand; /* an enum bosk_demand. Default: BOSK_DEMAND_UNKNOWN */
  int32_t unused; /* 0 */
} bosk_thread_attr_t;

/** All fields their defaults. `size` is sizeof(bosk_thread_attr_t) as the caller knows it.
 *  BOSK_EINVAL: null, or a size that no version had. */
int bosk_thread_attr_init_sized(bosk_thread_attr_t* attr, size_t size);
static inline int bosk_thread_attr_init(bosk_thread_attr_t* attr) {
  return bosk_thread_attr_init_sized(attr, sizeof *attr);
}

/** Makes a thread that calls function(argument), ready to run unless it is asleep or in a bubble that
 *  has not let it out. `attr` may be null: all defaults. The handle is in *thread before it runs;
 *  `thread` may be null if it is detached. The thread starts with the signal mask and floating-point
 *  state of whoever made the first thread of the process.
 *  BOSK_EINVAL: no function, no place for the handle, an attribute out of range, asleep and in a bubble
 *  at once; BOSK_ENOENT: no such level on this machine; BOSK_ESTALE: no such bubble; BOSK_ENOMEM. */
int bosk_thread_create(bosk_thread_t* thread, const bosk_thread_attr_t* attr,
                       void* (*function)(void*), void* argument);

/** Lets a thread that is asleep run. BOSK_ESTATE: it is not asleep. */
int bosk_thread_wake(bosk_thread_t thread);

/** Waits until the thread has ended; its result (of its function, or of bosk_thread_exit()) is in
 *  *result unless that is null. The handle names nothing afterwards. Meanwhile the caller's worker runs
 *  other threads. BOSK_EDEADLK: it is the caller; BOSK_ESTATE: it is detached, or another one joins it. */
int bosk_thread_join(bosk_thread_t thread, void** result);

/** Nobody will join it; what it takes is given back when it ends. BOSK_ESTATE: as bosk_thread_join(). */
int bosk_thread_detach(bosk_thread_t thread);

/** The calling thread; null if it was not made here (main, pthreads, members that run elsewhere than
 *  the thread that opened their region). */
bosk_thread_t bosk_thread_self(void);

/** Lets others run that are ready on the caller's worker: threads of at least its priority (anybody's, if
 *  the caller was not made here). Comes back at once if there are none. Always 0. */
int bosk_thread_yield(void);

/** Ends the calling thread with this result. Destructors of C++ objects on its stack are not run, cleanup
 *  handlers of pthreads neither. Returns only if it cannot: BOSK_EPERM, the caller was not made here or is
 *  inside of an OpenMP parallel region. */
int bosk_thread_exit(void* result);

/** Higher runs first: a worker takes the thread or bubble of highest priority of all queues that cover its
 *  processor, and of equals the most local one (2005 §3.3.2). Running threads of lower priority give way
 *  at the next tick of the clock (BOSK_PREEMPT_PERIOD), at once if they wait or yield.
 *  BOSK_EINVAL: INT32_MIN. */
int bosk_thread_set_priority(bosk_thread_t thread, int32_t priority);
int bosk_thread_get_priority(bosk_thread_t thread, int32_t* priority);

/** The work that is expected of it from now on; BOSK_UNKNOWN: nobody knows. The next distribution goes by
 *  it (2007 §2.2). */
int bosk_thread_set_load(bosk_thread_t thread, uint32_t load);
int bosk_thread_get_load(bosk_thread_t thread, uint32_t* load);

/** Not 0: may be interrupted when its time is over. By the thread itself only: BOSK_EPERM. */
int bosk_thread_set_preemptible(bosk_thread_t thread, int32_t preemptible);

/** The name that it was made with, "" if none, in name[0 ... size-1]. BOSK_EINVAL: no room for a NUL. */
int bosk_thread_get_name(bosk_thread_t thread, char* name, size_t size);

/** The bubble that it is directly in; null in *bubble: in none. */
int bosk_thread_get_bubble(bosk_thread_t thread, bosk_bubble_t* bubble);

/* ---- bubbles (2005 §3.1) -------------------------------------------------------------------------- */

/** What a bubble stands for; policies obey it (docs/policies.md). */
enum bosk_relation {
  BOSK_RELATION_NONE = 0,
  BOSK_RELATION_DATA_SHARING = 1,         /* the same data: one cache, one node */
  BOSK_RELATION_COLLECTIVE = 2,           /* they meet often: close, one to a processor */
  BOSK_RELATION_SMT_SYMBIOSIS = 3,        /* good neighbours on one core */
  BOSK_RELATION_GANG = 4,                 /* run at the same time or not at all */
  BOSK_RELATION_SEQUENCE = 5,             /* one after another */
  BOSK_RELATION_MEMORY_BESIDE_COMPUTE = 6 /* memory-bound ones beside those that compute */
};

/** An empty bubble, asleep. BOSK_EINVAL: no place for the handle; BOSK_ENOMEM. */
int bosk_bubble_create(bosk_bubble_t* bubble);

/** Gives it back. BOSK_EBUSY: there are threads or bubbles in it. It need not have been woken; one that is
 *  inside another one is taken out. */
int bosk_bubble_destroy(bosk_bubble_t bubble);

/** Puts a thread into the bubble: one that is asleep (it need not be woken then: it runs when the bubble
 *  lets it out), one that is ready, or the caller itself, who runs on and is one of the bubble's from its
 *  next wait on. Before and after the bubble was woken: if it has burst the thread comes out where it did
 *  (2005 §3.3.1). BOSK_ESTATE: it is in a bubble already; BOSK_EBUSY: another thread that is running or
 *  waiting; BOSK_ESTATE: it has ended. */
int bosk_bubble_insert_thread(bosk_bubble_t bubble, bosk_thread_t thread);

/** Puts a bubble with all that is in it into another one. BOSK_ESTATE: it is in a bubble already;
 *  BOSK_EBUSY: it is open at the moment; BOSK_ELOOP: `outer` is the bubble itself or inside of it. */
int bosk_bubble_insert_bubble(bosk_bubble_t outer, bosk_bubble_t inner);

/** Takes a thread out of the bubble that it is in. It is asleep then, until bosk_thread_wake() or the next
 *  insertion; the calling thread, who may take itself out, runs on. BOSK_ESTATE: it is in none;
 *  BOSK_EBUSY: another thread that is running or waiting. */
int bosk_bubble_remove_thread(bosk_thread_t thread);

/** The same for a bubble. BOSK_ESTATE: it is in none; BOSK_EBUSY: it is open at the moment. */
int bosk_bubble_remove_bubble(bosk_bubble_t inner);

/** Takes a thread out of its bubble and puts it into another one, in one step. Errors of the two. */
int bosk_bubble_move_thread(bosk_bubble_t to, bosk_thread_t thread);

/** Lets the bubble go: it is put on the domain of that level of the machine around the caller (null: the
 *  machine), sinks and bursts as the policy says (2005 §3.3.1). Bubbles inside of others go with those.
 *  BOSK_ESTATE: it was woken already or is inside of another one; BOSK_ENOENT: no such level. */
int bosk_bubble_wake(bosk_bubble_t bubble, const char* level);

/** Waits until no thread is left in the bubble and those in it that has not ended; asleep ones count.
 *  Empty: returns at once. Several may wait. BOSK_EDEADLK: the caller is in it. */
int bosk_bubble_join(bosk_bubble_t bubble);

/** Waits until all threads that are directly in the bubble and have not ended are here. By these threads:
 *  else BOSK_EPERM. *serial, unless `serial` is null: 1 for the one that came last, 0 for the others. One
 *  that ends meanwhile is not waited for. */
int bosk_bubble_barrier(bosk_bubble_t bubble, int* serial);

/** The bubble that it is directly in; null in *outer: in none. */
int bosk_bubble_get_bubble(bosk_bubble_t bubble, bosk_bubble_t* outer);

/** Priority of the bubble itself on its queue, not of what is in it: a bubble of lower priority than its
 *  threads bursts when those let out before leave a processor free, which makes gangs (2005 fig. 1) where threads
 *  that are let out stay on the queue of the whole machine (BOSK_POLICY=burst:machine). Policies that deal them out to processors,
 *  as the default one does, let each processor go on by itself: for gangs there, BOSK_RELATION_GANG. */
int bosk_bubble_set_priority(bosk_bubble_t bubble, int32_t priority);
int bosk_bubble_get_priority(bosk_bubble_t bubble, int32_t* priority);

/** Its load, instead of the sum of what is in it; BOSK_UNKNOWN: the sum. */
int bosk_bubble_set_load(bosk_bubble_t bubble, uint32_t load);
int bosk_bubble_get_load(bosk_bubble_t bubble, uint32_t* load);

/** The level of the machine at which it bursts, whatever the policy says (2005 §3.3.1); null: as the policy
 *  says. BOSK_ENOENT: no such level. */
int bosk_bubble_set_burst_level(bosk_bubble_t bubble, const char* level);

/** Strength of affinity (2005 §6), as attr.affinity of threads: once it has burst it stays, with what is in it, on the domain of
 *  this level around there, or where it burst if that is larger: processors elsewhere that idle take nothing of it, and after a
 *  time slice or a redistribution it comes back there. Until it is woken anew; null: no such thing. It counts from the next
 *  decision on. Policies that go by memory may still bring it to its own. BOSK_ENOENT: no such level. */
int bosk_bubble_set_affinity(bosk_bubble_t bubble, const char* level);

/** The policy that decides about it and what is in it, as far as nothing else is chosen there: "NAME" or
 *  "NAME:ARGUMENT" as in BOSK_POLICY (`bosk run --policy list` shows them), or a plug-in's file; null: the
 *  one of the bubble around it, outermost that of the process. It counts from the next decision on.
 *  BOSK_ENOENT: there is no such policy, or it does not take the argument. BOSK_EINVAL: several, or one for
 *  a level. BOSK_ENOMEM: no memory, or 16 others have been chosen. Loads files and allocates. */
int bosk_bubble_set_policy(bosk_bubble_t bubble, const char* policy);

/** Its time slice, in nanoseconds from when it bursts (2005 §3.3.3); 0, as it is made: none. When it is over
 *  and something of its priority or above waits where the bubble was let out, its threads are preempted and
 *  go back into it, the last one closes it, and it goes to the end of that queue. Looked at by ticks
 *  (BOSK_PREEMPT_PERIOD), so it lasts a period longer at the most. */
int bosk_bubble_set_slice(bosk_bubble_t bubble, uint64_t nanoseconds);
int bosk_bubble_get_slice(bosk_bubble_t bubble, uint64_t* nanoseconds);

/** What it stands for: an enum bosk_relation. BOSK_EINVAL: no such relation. */
int bosk_bubble_set_relation(bosk_bubble_t bubble, int relation);
int bosk_bubble_get_relation(bosk_bubble_t bubble, int* relation);

/* ---- statistics (2007 §3.1) ------------------------------------------------------------------------ */

/** Of a thread, or summed over a bubble and all that is in it. As of some moment during the call. */
typedef struct bosk_stats {
  size_t size;      /* set by the caller: sizeof(bosk_stats_t) */
  uint64_t cpu_ns;  /* time that they ran, in ns; of those that ran */
  uint64_t load;    /* given; 1 per thread where nobody told */
  uint32_t threads; /* that have not ended */
  uint32_t bubbles; /* in it, itself not counted */
  uint32_t not_started;
  uint32_t ready; /* started or not */
  uint32_t running;
  uint32_t blocked;
  uint32_t last_worker;  /* of a thread: where it ran last; BOSK_UNKNOWN: nowhere, or a bubble */
  uint32_t last_domain;  /* number of the domain (`bosk topo`) of that processor */
  uint64_t footprint;    /* bytes that are attached to them; BOSK_UNKNOWN_64: not known */
  uint32_t steals;       /* how often idle processors took them from elsewhere, a bubble as one */
  uint32_t steal_levels; /* how far, in sum: levels up to what is around both; 1: siblings */
  /* Of the last cache, with BOSK_COUNTERS=on: as long as they ran and it was counted. BOSK_UNKNOWN_64: nothing is known. */
  uint64_t cache_accesses;
  uint64_t cache_misses;
} bosk_stats_t;

/** BOSK_EINVAL: null, or a size that no version had. */
int bosk_thread_get_stats(bosk_thread_t thread, bosk_stats_t* stats);
int bosk_bubble_get_stats(bosk_bubble_t bubble, bosk_stats_t* stats);

#ifdef __cplusplus
}
#endif
#endif
