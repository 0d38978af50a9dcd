// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a policy ("bubble scheduler") is: an ops table with optional hooks.
//
// A policy sees entities, domains, footprints and loads, and answers with placements. It never sees
// a lock, a context or a kernel thread, so that the same code runs on real workers, on invented
// machines in tests, and in the simulator. It is called by the policy engine (engine.h), on any
// worker, several at once: what it keeps in its state it has to guard itself.
//
// Several policies act at once, each on its own level: a policy is in charge of the domains from
// its own level (`top`) down to, without, the level of the next policy inside (`bottom`); the
// outermost one is also in charge of what is above its level.
//
// Hooks are called with preemption off: they call nothing that can lock inside libc, malloc
// included (base/mapped_array.h is there for memory). start, stop and check may call anything.
#pragma once

#include <stdint.h>

#include <atomic>

#include "policies/team_placement.h"
#include "sched/entity.h"
#include "sched/relation.h"
#include "topology/error.h"
#include "topology/machine.h"

namespace bosk::policies {

class PolicyEngine;
struct PolicyOps;

constexpr uint32_t kNone = topology::kNone;

/// In place of a domain: a holder of the policies' own, which the search does not look at
/// (PolicyEngine::make_holder).
constexpr uint32_t kHolderBit = uint32_t{1} << 31;
constexpr bool is_holder(uint32_t place) { return place != kNone && (place & kHolderBit) != 0; }

/// Loads inside policies are fixed-point: this is the load of one thread of which nobody told
/// anything. Given loads (1 … 2^32-2 in the program's own unit) are multiplied by it, so that a
/// load that is divided among many members keeps some digits. A given 0 counts as one 1/kLoadUnit.
constexpr uint64_t kLoadUnit = 1024;
/// Of a given load, or of one that nobody told (sched::kUnknown32).
constexpr uint64_t load_of(uint32_t given) {
  if (given == UINT32_MAX) return kLoadUnit;
  return given == 0 ? 1 : given * kLoadUnit;
}

/// Tells entities apart, and nothing else. Valid until done() was called for it.
using EntityToken = const void*;

/// An entity as policies see it.
struct EntityView {
  EntityToken token;
  uint32_t parent;       ///< index in WorkView::entities; kNone: a root
  uint32_t first_child;  ///< a bubble's members are adjacent, in order of insertion
  uint32_t n_children;
  uint32_t ghosts;  ///< of a bubble's own: members that have not started
  uint32_t pieces;  ///< threads and ghosts in it, all levels; a thread: 1
  int32_t priority;
  uint64_t load;     ///< its own if given (a bubble too), else the sum of what is in it
  uint64_t content;  ///< a bubble: the sum of the loads of its members and ghosts
  sched::EntityKind kind;
  uint32_t last_domain;                    ///< where it ran last; kNone: not known
  const std::atomic<uint64_t>* footprint;  ///< bytes per NUMA node; null: not known
  sched::Relation relation;                ///< of a bubble
  sched::Demand demand;                    ///< of a thread
  /// PUs that can work on it at once: a thread 1, a bubble the sum of what is in it, but of a
  /// sequence the widest.
  uint32_t width;
};

/// Some entities and all that is in them: roots first, then level by level.
struct WorkView {
  const EntityView* entities = nullptr;
  uint32_t count = 0;
  uint32_t n_roots = 0;
};

/// An entity, or ghosts first … first+count-1 of a bubble, goes to a domain: to its run queue, for
/// the PUs below. An entity may go into a holder instead, in charge of the policy.
struct Placement {
  uint32_t entity;
  uint32_t first_ghost;
  uint32_t ghosts;  ///< 0: the entity itself, whole
  uint32_t domain;
};

/// A policy's answer. Every thread and ghost of the work must be in exactly one placement: its own,
/// its range's, or that of a bubble around it which stays whole. A bubble without a placement
/// bursts.
class PlacementList {
 public:
  /// False: out of memory; the policy then gives up (returns false).
  bool add(const Placement& placement) { return list_.push(placement); }
  uint32_t size() const { return list_.size(); }
  const Placement& operator[](uint32_t i) const { return list_[i]; }
  void clear() {
    list_.clear();
    waits_ = false;
  }
  void release() { list_.release(); }

  /// Instead of an answer: not now; as Verdict::Action::kWait.
  void set_wait() { waits_ = true; }
  bool waits() const { return waits_; }

 private:
  base::MappedArray<Placement> list_;
  bool waits_ = false;
};

/// What a policy is started with. The machine lives as long as the policy.
struct PolicyStart {
  const topology::Machine* machine;
  const topology::Level* top;      ///< the level that it acts at
  const topology::Level* bottom;   ///< level of the next policy inside; null: none, down to the PUs
  bool top_given;                  ///< false: nobody named a level, `top` is the machine's
  const char* argument;            ///< text after ':' ; "" if none
  const PolicyOps* ops = nullptr;  ///< its own table
  PolicyEngine* engine =
      nullptr;  ///< where it acts: for holders; null: nowhere, it is checked only
};

/// Work that is to be spread below `domain`.
struct Submission {
  WorkView work;
  uint32_t domain;
  /// Load that is booked on each domain already (sum over what is below it), n_domains entries;
  /// null: none. It changes while one looks; relaxed loads are good enough.
  const std::atomic<uint64_t>* booked;
  uint32_t pu = 0;  ///< of the worker that came upon it
};

/// A closed bubble that a worker's search came upon.
struct FoundBubble {
  uint32_t domain;   ///< on whose queue
  uint32_t pu;       ///< of the worker
  uint32_t members;  ///< entities directly in it
  uint32_t ghosts;
  int32_t priority;
  EntityToken token = nullptr;
  sched::Relation relation = sched::Relation::kNone;
  EntityToken parent = nullptr;  ///< the bubble that it belongs to; null: it is an outermost one
  uint32_t depth = 0;            ///< how many bubbles it is nested in
  bool waited = false;           ///< a policy said kWait to it before, and it is asked for again
  bool released =
      false;  ///< it has come out of a holder, and has neither burst nor gone into one since
  /// Whether bubbles wait in its domain or one around it, itself not counted, and the highest of
  /// their priorities. To tick(): also what is queued there and was not found yet.
  bool others_wait = false;
  int32_t waiting_priority = 0;
  uint32_t load = UINT32_MAX;  ///< told for it; UINT32_MAX: nobody told
  /// To found(): as EntityView::load, where that is known without a look at many; else UINT64_MAX.
  uint64_t load_inside = UINT64_MAX;
  const std::atomic<uint64_t>* booked = nullptr;  ///< to found(): see Submission
};

struct Verdict {
  enum class Action : uint8_t {
    kBurst,    ///< release what it holds here, or on `domain`, which lies below on the worker's way
               ///< to its PU; if it has ghosts, serve them there
    kDescend,  ///< go down to `domain`, which lies below on the worker's way to its PU
    kTakeGhost,   ///< stay closed here; workers take its ghosts
    kDistribute,  ///< ask submit() where its contents go
    kKeep,        ///< closed, into the holder `domain`, until the policy lets it out
    kWait,        ///< not now: it waits aside until a PU of its domain has nothing to do, and then
                  ///< found() is asked again, in order of priority and then of waiting
  };
  Action action = Action::kBurst;
  uint32_t domain = kNone;
  /// kBurst: what comes out is in front of what is queued here, so that bubbles behind stay whole until
  /// it is their turn.
  bool front = false;
};

enum class TickAnswer : uint8_t { kKeep, kRegenerate };

/// What a PU without work takes from the queues of others, nearest first. Of one bubble or thread at a
/// time, whole; of what its relation keeps in one place, nothing (relations.h).
struct StealRule {
  /// At each distance bubbles come first that have at least this load (what was told or booked for
  /// them, else kLoadUnit for each direct member and ghost), then anything.
  uint64_t enough = kLoadUnit;
  /// A bubble goes to the PU's own queue; false: to the smallest domain around the PU, on its own side,
  /// that has a PU for each direct member. Threads always go to the PU.
  bool to_pu = true;
  /// Such bubbles come first at any distance, before what is near but smaller.
  bool far_bubbles_first = false;
  /// What has as much of its memory on the node where it is queued as on the PU's stays there, as long as that node has a
  /// PU for all that is booked there, or no more than so many percent of the PU's node. 0: memory plays no part.
  uint32_t keeps_percent = 0;
  /// And so does whatever has memory anywhere: that comes to it.
  bool memory_comes = false;
};

struct PolicyOps {
  const char* name;
  const char* summary;  ///< one line for the user

  /// Is `argument` (not "") one that this policy takes on this machine? No hook: it takes none.
  bool (*check)(const char* argument, const topology::Machine& machine, topology::Error* error);
  /// Makes the state. False: `error` says why.
  bool (*start)(const PolicyStart& start, void** state, topology::Error* error);
  void (*stop)(void* state);

  /// Where do these entities go? False: no answer (out of memory); then they come out where they
  /// are.
  bool (*submit)(void* state, const Submission& submission, PlacementList* answer);
  /// Where are the members of a team at home? Called when a team is made that is not hot. Never
  /// fails: no hook or no memory means that all are at home with the opener.
  void (*submit_team)(void* state, const TeamShape& shape, TeamPlacement* answer);
  /// What to do with this bubble? No hook: burst.
  Verdict (*found)(void* state, const FoundBubble& bubble);
  /// The worker of `pu` has nothing to do. True: something was changed, it shall search again.
  bool (*idle)(void* state, uint32_t pu);
  /// The bubble, which burst on `bubble.domain`, has used up its time slice.
  TickAnswer (*tick)(void* state, const FoundBubble& bubble);
  /// The load of an entity was told, or told anew. For policies that keep books; the next submit()
  /// sees it in any case.
  void (*hint)(void* state, EntityToken entity, uint64_t old_load, uint64_t new_load);
  /// An entity that was placed on `domain` with `load` has ended.
  void (*done)(void* state, EntityToken entity, uint32_t domain, uint64_t load);
  /// The worker of `pu` has nothing to do, and idle() had no advice: by which rule does it take from
  /// others, within the domain of the policy's level around it? False: it takes nothing. No hook: it pulls
  /// (engine_pull.cpp).
  bool (*steal)(void* state, uint32_t pu, StealRule* rule) = nullptr;
  /// In the child of a fork, where only the forking thread is left: locks may be held by others.
  void (*forked)(void* state) = nullptr;
  /// The work runs, each entity on its last_domain. How many bytes would be nearer to their threads if it
  /// were submitted anew, as `answer` then says? 0: nothing speaks against how things are. No hook: memory plays no part.
  uint64_t (*gain)(void* state, const Submission& present, PlacementList* answer) = nullptr;

  /// What check() takes, in a few words for the user; null: no argument.
  const char* argument = nullptr;
  /// Who looks for something to do looks near first, also where no hook is asked: among OpenMP's teams.
  bool nearest_first = true;
  /// Within a last-level cache it makes no difference to the policy who comes upon a bubble first: while one lies
  /// closed, a worker may run a thread in it for which another thread of it waits (threads/lending.h).
  bool lends = false;
};

/// Is `d` a domain of the level, or below one?
inline bool at_or_below(const topology::Machine& machine, const topology::Level& level,
                        const topology::Domain& d) {
  return machine.domain_array[level.of_pu[d.first_pu]].depth <= d.depth;
}

/// The child of `d` that has the PU. O(log children).
const topology::Domain& child_with_pu(const topology::Domain& d, uint32_t pu);

}  // namespace bosk::policies
