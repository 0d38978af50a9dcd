/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bosk/policy.h: a policy ("bubble scheduler") of your own, in a shared object.
 *
 * ```sh
 * cc -std=c99 -O2 -shared -fPIC mine.c -o mine.so
 * bosk run --policy ./mine.so ./app                        # or BOSK_POLICY=./mine.so
 * bosk run --policy spread@machine,./mine.so@node ./app    # composed with another, level by level
 * ```
 * `./mine.so:ARGUMENT` hands it an argument.
 *
 * A policy says where bubbles and threads go on the machine. It sees entities, domains and loads,
 * and answers with placements; it never sees a lock, a stack or a kernel thread. docs/plugins.md
 * shows how to write one in an afternoon, examples/policy/ is one.
 *
 * The shared object defines one symbol, the table of its hooks, constant from its start:
 *
 * ```c
 * const struct bosk_policy bosk_policy_plugin = {
 *     BOSK_POLICY_HEADER, .name = "mine", .summary = "what it does", .submit = my_submit};
 * ```
 *
 * Every hook may be left out. What is asked of one that is not there, each says.
 *
 * Stable: structures begin with their size and grow at their end only. A table that was compiled
 * with an older header of the same BOSK_POLICY_INTERFACE works; one with hooks that the running
 * bosk does not know is refused, with a line that says so.
 *
 * RULES FOR HOOKS. Except for check, start, stop and forked, hooks run on any worker, several at
 * the same time, in the middle of scheduling, where a thread of the program may have been
 * interrupted with a lock of the C library in its hands. So they
 *   - guard what they keep by atomics or by spin locks of their own;
 *   - call nothing that can lock or sleep: no malloc, stdio, pthread_mutex, dlopen, no OpenMP.
 *     Allowed are the functions of struct bosk_policy_api, memcpy and its like, sem_post, and raw
 *     system calls that do not wait;
 *   - are short: a worker waits for them.
 * Threads that the policy itself has made (in start) may do what they like.
 *
 * Numbers of domains, levels, nodes, PUs and entities that do not exist are answered with
 * BOSK_POLICY_NONE (or 0, where a count is asked for), never with a crash.
 */
#ifndef BOSK_POLICY_H
#define BOSK_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Meaning of hooks and structures. A plug-in with another one is refused. */
#define BOSK_POLICY_INTERFACE 1
/** The first two members of struct bosk_policy. */
#define BOSK_POLICY_HEADER BOSK_POLICY_INTERFACE, (uint32_t)sizeof(struct bosk_policy)
/** No such thing, or not known. */
#define BOSK_POLICY_NONE UINT32_MAX
/** A load or a size that nobody told. Never 0, which is a value. */
#define BOSK_POLICY_UNKNOWN UINT64_MAX
/** The load of a thread of which nobody told anything. Loads that the program tells are multiplied
    by it, so that one that is divided among many keeps some digits. */
#define BOSK_POLICY_LOAD_UNIT 1024
/** Longest name of a policy, and longest argument. */
#define BOSK_POLICY_NAME_MAX 31
#define BOSK_POLICY_ARGUMENT_MAX 255

/** Where a policy acts: made before start(), gone after stop(). There can be several in a process
    (OpenMP teams and the thread library have one each), with a state each. */
typedef struct bosk_policy_host bosk_policy_host;
/** What submit() is to place, valid until it returns. Its entities are numbered from 0: roots
    first, then level by level. */
typedef struct bosk_policy_work bosk_policy_work;
/** Where the homes of a team's members go, valid until submit_team() returns. */
typedef struct bosk_policy_homes bosk_policy_homes;
/** Tells entities apart, and nothing else; never to be looked into. May be kept from hook to hook,
    until done() was called for it: afterwards a new entity may get the same. */
typedef const struct bosk_policy_entity_type* bosk_policy_entity;

/** What the members of a bubble have to do with each other, as the program says. bosk itself sees to
    it that a bubble with a relation other than NONE or GANG is distributed as it asks, on one seat: a
    policy may only choose where it sits, and is not asked found() for it. */
enum bosk_policy_relation {
  BOSK_POLICY_RELATION_NONE = 0,
  BOSK_POLICY_RELATION_DATA_SHARING,
  BOSK_POLICY_RELATION_COLLECTIVE,
  BOSK_POLICY_RELATION_SMT_SYMBIOSIS,
  BOSK_POLICY_RELATION_GANG,
  BOSK_POLICY_RELATION_SEQUENCE,
  BOSK_POLICY_RELATION_MEMORY_BESIDE_COMPUTE
};

enum bosk_policy_entity_kind { BOSK_POLICY_THREAD = 0, BOSK_POLICY_BUBBLE = 1 };

/** What a domain or level is. A domain that is several things at once (a package with one L3) goes
    by the first. */
enum bosk_policy_kind {
  BOSK_POLICY_MACHINE = 0,
  BOSK_POLICY_PACKAGE,
  BOSK_POLICY_NODE, /**< NUMA node */
  BOSK_POLICY_DIE,
  BOSK_POLICY_L3,
  BOSK_POLICY_L2,
  BOSK_POLICY_CORE,
  BOSK_POLICY_PU, /**< what runs one thread at a time */
  BOSK_POLICY_GROUP
};

/** A closed bubble that a worker came upon while it looked for something to run. */
struct bosk_policy_found {
  uint32_t size;
  uint32_t domain;  /**< on whose queue */
  uint32_t pu;      /**< of the worker */
  uint32_t members; /**< entities directly in it */
  uint32_t ghosts;  /**< members of its team that have not started */
  int32_t priority;
  bosk_policy_entity bubble;
  uint64_t load;     /**< told for it, times BOSK_POLICY_LOAD_UNIT; BOSK_POLICY_UNKNOWN: not told */
  uint32_t relation; /**< enum bosk_policy_relation */
  uint32_t waited;   /**< not 0: the answer was BOSK_POLICY_WAIT before */
  /** Not 0: other bubbles wait in its domain or one around it; the highest of their priorities. */
  uint32_t others_wait;
  int32_t waiting_priority;
  bosk_policy_entity parent; /**< the bubble that it belongs to; null: it is an outermost one */
  uint32_t depth;            /**< how many bubbles it is nested in */
  /** Not 0: it has come out of a holder, by release(), and has neither burst nor gone into one since. */
  uint32_t released;
};

enum bosk_policy_action {
  BOSK_POLICY_BURST = 0,  /**< what it holds comes out here */
  BOSK_POLICY_DESCEND,    /**< it goes down to domain `target`, on the worker's way to its PU */
  BOSK_POLICY_TAKE_GHOST, /**< it stays closed here and serves its ghosts */
  BOSK_POLICY_DISTRIBUTE, /**< submit() says where its contents go */
  BOSK_POLICY_KEEP,       /**< into holder `target`, until release() */
  BOSK_POLICY_WAIT        /**< not now: found() is asked again when a PU of its domain idles */
};
struct bosk_policy_verdict {
  uint32_t action; /**< enum bosk_policy_action */
  uint32_t target;
};

/** What a PU without work takes from the queues of others, nearest first. */
struct bosk_policy_steal_rule {
  uint32_t size;
  /** Not 0: a bubble goes to the PU's own queue; 0: to the smallest domain around the PU, on its own
      side, that has a PU for each direct member. */
  uint32_t to_pu;
  /** At each distance bubbles of at least this load come first, then anything. */
  uint64_t enough;
};

/** A team of OpenMP threads that is being made. */
struct bosk_policy_team {
  uint32_t size;
  uint32_t members;       /**< the opener, who is member 0, included */
  const uint32_t* loads;  /**< one per member, UINT32_MAX: not told; null: all equal */
  uint32_t opener_domain; /**< home of the opener in its own team; the root for a level-1 team */
  uint32_t opener_pu;     /**< where it runs now */
  uint32_t depth; /**< in how many teams of several threads it is nested; 0: an outermost one */
};

/** The functions that bosk offers, all safe in every hook and in threads of the policy. */
struct bosk_policy_api {
  uint32_t size;

  /* The machine never changes. Domain 0 is the root, children are neighbours. PUs and NUMA nodes are
     numbered from left to right, not as Linux numbers them. */
  uint32_t (*n_domains)(bosk_policy_host*);
  uint32_t (*n_pus)(bosk_policy_host*);
  uint32_t (*n_nodes)(bosk_policy_host*);
  uint32_t (*kind)(bosk_policy_host*, uint32_t domain);  /**< enum bosk_policy_kind */
  uint32_t (*depth)(bosk_policy_host*, uint32_t domain); /**< steps up to the root */
  uint32_t (*parent)(bosk_policy_host*, uint32_t domain);
  uint32_t (*n_children)(bosk_policy_host*, uint32_t domain);
  uint32_t (*child)(bosk_policy_host*, uint32_t domain, uint32_t index);
  uint32_t (*first_pu)(bosk_policy_host*, uint32_t domain);
  uint32_t (*pus_below)(bosk_policy_host*, uint32_t domain); /**< how many from first_pu() on */
  uint32_t (*domain_of_pu)(bosk_policy_host*, uint32_t pu);
  uint32_t (*node_of_pu)(bosk_policy_host*, uint32_t pu); /**< nearest NUMA node */
  uint32_t (*node_distance)(bosk_policy_host*, uint32_t from, uint32_t to); /**< 10: local */
  /** Smallest domain that holds both. */
  uint32_t (*common)(bosk_policy_host*, uint32_t domain, uint32_t other);
  /** A level by its word ("node", "l3" …, as in BOSK_POLICY); BOSK_POLICY_NONE: not here. */
  uint32_t (*find_level)(bosk_policy_host*, const char* word);
  uint32_t (*level_size)(bosk_policy_host*, uint32_t level); /**< domains in it */
  uint32_t (*level_domain)(bosk_policy_host*, uint32_t level, uint32_t index);
  uint32_t (*level_domain_of_pu)(bosk_policy_host*, uint32_t level, uint32_t pu);
  /** Load that is placed on the domain and below it now. Changes while one looks. */
  uint64_t (*booked)(bosk_policy_host*, uint32_t domain);

  /* Work, in submit() only. */
  uint32_t (*count)(const bosk_policy_work*); /**< entities */
  uint32_t (*roots)(const bosk_policy_work*); /**< the first so many have no parent here */
  uint32_t (*entity_kind)(const bosk_policy_work*, uint32_t entity);
  uint32_t (*parent_of)(const bosk_policy_work*, uint32_t entity);
  uint32_t (*children_of)(const bosk_policy_work*, uint32_t entity); /**< how many */
  uint32_t (*child_of)(const bosk_policy_work*, uint32_t entity, uint32_t index);
  uint32_t (*ghosts_of)(const bosk_policy_work*, uint32_t entity); /**< not started, its own */
  uint32_t (*pieces_of)(const bosk_policy_work*, uint32_t entity); /**< threads and ghosts in all */
  int32_t (*priority_of)(const bosk_policy_work*, uint32_t entity);
  /** Told for it, else the sum of what is in it. */
  uint64_t (*load_of)(const bosk_policy_work*, uint32_t entity);
  /** Of a bubble: the sum of the loads of what is in it, whatever was told for itself. */
  uint64_t (*content_of)(const bosk_policy_work*, uint32_t entity);
  uint32_t (*last_domain_of)(const bosk_policy_work*, uint32_t entity); /**< where it ran last */
  /** Bytes on a NUMA node that are attached to it; BOSK_POLICY_UNKNOWN: not known. */
  uint64_t (*footprint_of)(const bosk_policy_work*, uint32_t entity, uint32_t node);
  bosk_policy_entity (*token_of)(const bosk_policy_work*, uint32_t entity);
  uint32_t (*relation_of)(const bosk_policy_work*, uint32_t entity); /**< of a bubble */
  /** PUs that can work on it at once: of a sequence its widest member, else the sum of its members. */
  uint32_t (*width_of)(const bosk_policy_work*, uint32_t entity);
  /** The entity with all that is in it goes to a domain at or below that of the submission, or into
      a holder. Every thread must be in exactly one place: its own or that of a bubble around it. A
      bubble without a place bursts. 0: out of memory; then submit() should return 0. */
  int (*place)(bosk_policy_work*, uint32_t entity, uint32_t domain);
  int (*place_in_holder)(bosk_policy_work*, uint32_t entity, uint32_t holder);
  /** Memory until submit() returns, zeroed, one piece per call of submit(): a second call gives the
      same, grown. Null: there is none. */
  void* (*memory)(bosk_policy_work*, size_t bytes);

  /* Homes, in submit_team() only; the last answer counts. */
  /** All on one domain; other workers leave the members alone. */
  void (*home_together)(bosk_policy_homes*, uint32_t domain);
  /** Spread over the PUs of a domain by number, neighbours together. */
  void (*home_even)(bosk_policy_homes*, uint32_t domain);
  /** The next `count` members, from member 0 on; together the calls must name each once. */
  void (*home_next)(bosk_policy_homes*, uint32_t count, uint32_t domain);

  /* Holders: queues of the policy's own, which no worker searches. What is in one is the policy's
     charge: it runs only after release(), and a policy that forgets it stops the program. What is in
     holders when the policy stops goes to the machine's queue. */
  /** A new holder, in order of priority, first come first served; BOSK_POLICY_NONE: 64 are there.
      It stays until stop(). */
  uint32_t (*make_holder)(bosk_policy_host*);
  /** Entities in it. Changes while one looks. */
  uint32_t (*held)(bosk_policy_host*, uint32_t holder);
  /** Lets up to `most` entities out, best first, to a domain; idle workers there are woken. Returns
      how many. An entity whose bubble was closed meanwhile goes back into the bubble. */
  uint32_t (*release)(bosk_policy_host*, uint32_t holder, uint32_t most, uint32_t domain);
  /** Lets this one out. 0: it is not, or no longer, in that holder. O(entities in it). */
  uint32_t (*release_entity)(bosk_policy_host*, uint32_t holder, bosk_policy_entity entity,
                             uint32_t domain);

  /** A phase of redistribution (2009, section 6): what is open at the domain and below is closed, goes
      to its queue and is found and submitted anew. Returns how many bubbles it closed. From idle(),
      tick() and threads of the policy; found() and submit() have a bubble in hand that would not come
      along. O(entities queued there). */
  uint32_t (*redistribute)(bosk_policy_host*, uint32_t domain);

  /* Behind here: only if `size` says that it is there. */
  /** In submit_team(), beside any of home_*(): the members run at the same time or not at all, in turns
      of `ticks` of the preemption period (2005, section 3.1); 0: they need not. A team with more members
      than workers is told to the user once, and is none. Level-1 members run at the same time anyway. */
  void (*home_as_gang)(bosk_policy_homes*, uint32_t ticks);
};

/** What a policy is started with. */
struct bosk_policy_start {
  uint32_t size;
  const struct bosk_policy_api* api; /**< for good */
  bosk_policy_host* host;
  const char* argument;  /**< text behind ':' ; "" if none */
  uint32_t top_level;    /**< the level that the policy acts at; the outermost also acts above it */
  uint32_t bottom_level; /**< of the next policy inside; BOSK_POLICY_NONE: none, down to the PUs */
  int top_given;         /**< 0: nobody named a level, and it is the machine's */
};

/** The table of hooks. */
struct bosk_policy {
  uint32_t interface; /**< BOSK_POLICY_HEADER fills both */
  uint32_t size;
  const char* name;    /**< letters, digits, '-' and '_', for messages and the report */
  const char* summary; /**< one line for the user */

  /** Is the argument one that this policy takes here? Called before start(), also by `bosk run`,
      on a thread of the program (or tool); may call anything. Holders cannot be made yet, and
      bottom_level is not known. Else it writes why not to `why`, one line, and returns 0.
      Without it: there must be no argument. */
  int (*check)(const struct bosk_policy_start* start, char* why, size_t room);
  /** Makes the state that all other hooks get; may call anything, make holders and threads. The
      calling thread may be bound to a CPU, and its threads inherit that. 0: it cannot, `why` says
      why, and the default policy goes on. Without it: the state is null. */
  int (*start)(const struct bosk_policy_start* start, void** state, char* why, size_t room);
  /** Nothing is called any more and nobody may call back: threads of the policy must have been
      joined when it returns. May call anything. Not called when the process simply ends. */
  void (*stop)(void* state);

  /** Where do these entities go? Called for a bubble with the verdict BOSK_POLICY_DISTRIBUTE, with
      everything in it: nothing of it runs or goes away meanwhile. `domain`: where it was found.
      Returns 0 for "no answer": then it bursts there. An answer that cannot be (see place()) is told
      to the user once, and the bubble bursts. Without it: it bursts. */
  int (*submit)(void* state, bosk_policy_work* work, uint32_t domain);
  /** Where are the members of this team at home? Called when a team is made that was not just there
      with the same shape. Without it, and if the answer names not each member once: with the opener.
      A level-1 member runs on the worker of its number in any case; its home is where the teams that
      it opens belong. */
  void (*submit_team)(void* state, const struct bosk_policy_team* team, bosk_policy_homes* homes);
  /** What shall become of this bubble? A verdict that cannot be is told once, and it bursts. Without
      it: distribute where there is submit() and something to distribute, else burst. */
  struct bosk_policy_verdict (*found)(void* state, const struct bosk_policy_found* bubble);
  /** The worker of the PU found nothing to run. Not 0: something was changed (released, say), look
      again at once. 0: what waits is asked found() for again, then steal() is asked. Called very
      often. Without it: 0. */
  int (*idle)(void* state, uint32_t pu);
  /** The time slice of a bubble that burst on bubble->domain is over. Not 0: regenerate it, that is,
      take its threads back and put it at the end of its queue. Without it: 0. */
  int (*tick)(void* state, const struct bosk_policy_found* bubble);
  /** The load of an entity was told anew; times BOSK_POLICY_LOAD_UNIT. Without it: nothing, and the
      next submit() sees it in any case. */
  void (*hint)(void* state, bosk_policy_entity entity, uint64_t old_load, uint64_t new_load);
  /** An entity that was placed on `domain` with `load` has ended. Without it: nothing. */
  void (*done)(void* state, bosk_policy_entity entity, uint32_t domain, uint64_t load);
  /** The worker of the PU found nothing, and idle() changed nothing: by which rule does it take from
      others, within the domain of the policy's level around it? The rule is bosk's own (any bubble or
      thread, to the PU) until it is changed. 0: it takes nothing, and what the policy has placed stays
      where it is. Without it idle PUs do NOT leave things alone: they pull what waits elsewhere, as they
      do for the built-in policies that have no rule of their own: closed bubbles, open ones with their
      threads, and threads of larger ones, out of the domain where the policy has put them, up to that
      where their outermost bubble was woken (docs/evolution.md, "Corrective"). A policy whose
      placements are to last has a steal() that returns 0.
      Of a bubble that the program has given a policy of its own (bosk_bubble_set_policy()) the policy of
      the domain says what is taken. Not asked for members of OpenMP teams that have not started (see
      home_together()), nor, where there are no ticks, for what has waited for long and has no idle PU. */
  int (*steal)(void* state, uint32_t pu, struct bosk_policy_steal_rule* rule);
  /** In the child of a fork, before fork() returns there: the threads of the policy are gone, hooks
      of other threads were cut off wherever they were, and all holders are empty, for what was in
      them did not come along. Make the state good again, and threads anew if they are wanted; may
      call anything. Without it: nothing. */
  void (*forked)(void* state);
};

/** The symbol that a plug-in defines. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const struct bosk_policy bosk_policy_plugin;

#ifdef __cplusplus
}
#endif

#endif
