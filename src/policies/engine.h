// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Joins the search with the policies: turns what a policy answers into moves of entities.
//
// The scheduler asks the engine for what a PU runs next; the engine searches, hands bubbles that it
// finds to the policy that is in charge of that domain, carries out the verdict, and searches on.
// This is the only place that knows both the policies and the locks.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/cpu.h"
#include "base/memory_moves_setting.h"
#include "policies/holders.h"
#include "policies/memory/requests.h"
#include "policies/policy.h"
#include "policies/registry.h"
#include "policies/scratch_pool.h"
#include "sched/search.h"

namespace bosk::policies {

/// What a distribution needs: the work as the policy sees it, and who is who.
struct WorkScratch {
  base::MappedArray<EntityView> entities;
  base::MappedArray<sched::TreeEntity*> who;
  base::MappedArray<uint32_t> area;  ///< smallest domain around all that is in the bubble
  base::MappedArray<uint8_t> fate;
  PlacementList answer;
  WorkScratch* next_scratch = nullptr;

  void release();
};

/// `count` entities became available on the queue of `domain`: whoever can wakes idle workers below
/// it.
struct ReleasedHook {
  void (*call)(void* context, uint32_t domain, uint32_t count) = nullptr;
  void* context = nullptr;
};

/// Nanoseconds that only grow. Null: the kernel's monotonic clock. Tests and simulations give their own.
struct ClockHook {
  uint64_t (*call)(void* context) = nullptr;
  void* context = nullptr;
};

/// What keeps idle workers from moving bubbles about for nothing (2005 §3.4).
struct Damping {
  /// A bubble that was pulled is let alone for this long, and twice as long after each further pull: so
  /// it moves at most log2(its life / settle_ns) times.
  uint64_t settle_ns = 200'000;
  /// Work that is expected to end sooner is not moved. What nobody knows about is expected to last.
  uint64_t worth_ns = 20'000;
};

/// How often what happened, since start().
struct EvolutionCounts {
  uint64_t moved;        ///< bubbles that an idle PU pulled, closed as they were found
  uint64_t regenerated;  ///< open bubbles that an idle PU closed to pull them
  uint64_t widened;      ///< open bubbles too large for its side, moved up as they were
  uint64_t threads;      ///< single threads, within the area of their bubble
  uint64_t settled;      ///< not pulled: it was lately
  uint64_t ending;       ///< not pulled: not worth it
  uint64_t slices;       ///< bubbles closed because their time slice was over
  uint64_t renewed;      ///< not closed, because nothing else would have run
  uint64_t phases;       ///< redistribution phases
};

/// How often, since start(), by trigger: bubbles were looked at, and closed because a distribution would bring
/// threads nearer to their memory.
struct MemoryCounts {
  uint64_t looked[kMemoryTriggers];
  uint64_t closed[kMemoryTriggers];
};

/// Working memory of PolicyEngine::redecide().
struct PresentScratch {
  base::MappedArray<EntityView> found;     ///< depth first, as one comes upon them
  base::MappedArray<EntityView> entities;  ///< level by level, as policies want them
  base::MappedArray<sched::TreeEntity*> who;
  base::MappedArray<uint32_t>
      next;  ///< of `found`: the sibling behind it; then where it is in `entities`
  PlacementList answer;
  PresentScratch* next_scratch = nullptr;

  void release();
};

/// Plain data; start() and stop() say when it works. Except for these two, everything is called
/// with preemption off, by any worker at any time.
class PolicyEngine {
 public:
  /// `queues` belong to `queues.machine()`, and both outlive the engine. False: `error` says why,
  /// and nothing is left behind.
  bool start(sched::DomainQueues& queues, const PolicyPlan& plan, const ReleasedHook& released,
             topology::Error* error);
  void stop();

  sched::DomainQueues& queues() const { return *queues_; }

  /// What the PU runs next, of priority greater than `above`; see sched::find_work().
  sched::Found next(uint32_t pu, int32_t above = sched::kNoEntity) {
    return sched::find_work(
        queues_->path(pu),
        [this, pu](sched::NestedBubble& bubble, sched::RunQueue& queue) {
          handle(bubble, queue, pu);
          return sched::Found{};
        },
        above);
  }

  /// For who searches itself: decides about a bubble that a worker of `pu` has taken off `queue`.
  void handle(sched::NestedBubble& bubble, sched::RunQueue& queue, uint32_t pu);

  /// A new entity that belongs to no bubble, or whose bubble is open, may run anywhere below
  /// `domain`.
  void wake(sched::TreeEntity& entity, uint32_t domain);

  /// Homes of the members of a team, from the policy in charge of the opener's home. O(1) memory in
  /// the usual case; release() the answer before it is thrown away.
  void place_team(const TeamShape& shape, TeamPlacement* answer) const;

  /// The program told the load of an entity (sched::kUnknown32: took it back).
  void set_load(sched::TreeEntity& entity, uint32_t load);
  /// By the runner of an entity that ends; before leave().
  void done(sched::TreeEntity& entity);
  /// The PU has nothing to run. Policies' hooks first, then bubbles that wait, then what the policies let
  /// idle PUs steal; else corrective regeneration: see pull(). True: search again.
  bool idle(uint32_t pu);
  /// Looks for something that is queued out of the PU's reach, nearest first, and brings it into reach:
  /// a bubble as a whole, where it fits (it is closed, and bursts again on this side); a larger one
  /// comes out on the smallest domain around both; of a bubble whose area has the PU in it, one thread.
  /// Threads without a bubble stay where they were put, and nothing leaves the domain on which the
  /// outermost bubble around it was woken. Not where the policy in charge has a steal hook, and not what
  /// a relation keeps together. The queues hold TreeEntities only.
  /// O(levels) for each candidate, at most 16 of them, and O(members) for the one that is moved.
  /// `looked`: how many words and queues it has read.
  bool pull(uint32_t pu, uint32_t* looked = nullptr);
  /// For where no tick can make a PU look up from what it runs: the first entity that is queued out of the
  /// PU's reach, on a domain of which no PU `attends`, whatever was said of its place, comes out on the
  /// smallest domain around both; a bubble on the PU. A hint is not worth a program that stands still. True: search again.
  /// `look`: nothing is moved, and true means that there is something. O(domains).
  bool rescue(uint32_t pu, bool (*attended)(void* context, const topology::Domain& domain),
              void* context, bool look = false);
  /// The bubble's time slice is over. True: it is being regenerated. `slice_runs`: see tick_thread().
  bool tick(sched::NestedBubble& bubble, bool* slice_runs = nullptr);
  /// The thread runs, and a tick has come (2005 §3.3.3): closes the outermost bubble around it whose
  /// time slice (Evolution::slice_ns) is over, if anything else wants to run where it was released;
  /// or which a redistribution phase has not reached yet; or which its policy's tick hook wants
  /// closed. Starts a redistribution phase when one is due. True: requeue() the thread now.
  /// `slice_runs` becomes true if only a later tick can end a slice that runs: what waits for its end is on
  /// no queue that the thread's PU sees.
  bool tick_thread(sched::TreeEntity& running, bool* slice_runs = nullptr);

  /// A global redistribution phase (2009 §6): all that is open below the domain is closed, goes to its
  /// queue, and so is submitted to the policy anew. Bubbles of which nothing is queued follow at their
  /// members' next tick_thread(). Returns how many it closed. O(entities queued below).
  uint32_t redistribute(uint32_t domain = 0);
  /// How often tick_thread() does that for the whole machine; 0: never. start() takes BOSK_REDISTRIBUTE.
  void set_redistribution_period(uint64_t ns);

  // engine_memory.cpp: what memory has to say about threads that run already. Does nothing where no policy
  // minds (PolicyOps::gain).

  /// Footprints are not what they were, or somebody could take more: bubbles are looked at when a thread in
  /// them ticks next, each once for any number of calls. One load where no policy minds.
  void memory_changed(MemoryTrigger trigger);
  /// Looks now: if the bubble is open and a distribution would bring its threads nearer to an eighth or more of
  /// what is attached, it is closed and submitted anew, an outermost one to where it was woken. The caller keeps
  /// it from going away and sees to it that it stays in the bubble around it. O(entities), and the policy's cost.
  /// True: it was closed.
  /// Where memory may move as well as threads (moves_data()), it is asked for (set_memory_requests()), and the answer is false.
  bool redecide(sched::NestedBubble& bubble, MemoryTrigger trigger);
  /// The same, by whichever of `threads` callers comes last.
  bool redecide_when_all(sched::NestedBubble& bubble, uint32_t threads);
  /// Of `threads` callers the last one.
  static bool comes_last(sched::NestedBubble& bubble, uint32_t threads);
  MemoryCounts memory_counts() const;

  // For whoever is behind the hook.

  /// Somebody looks at the bubble: is it open, and placed by a policy that goes by memory?
  bool may_redecide(sched::NestedBubble& bubble, MemoryTrigger trigger);
  /// What redecide() does about threads, whatever may move beside them.
  bool redecide_threads(sched::NestedBubble& bubble, MemoryTrigger trigger);
  /// The thread, which is in the caller's hand, becomes ready: the domain that was decided on for it meanwhile; kNone: none.
  uint32_t take_wake_domain(sched::TreeEntity& thread) {
    return BOSK_LIKELY(thread.figures.wake_domain.load(std::memory_order_relaxed) ==
                       sched::kUnknown32)
               ? kNone
               : move_to_wake_domain(thread);
  }
  /// At a tick: where was decided on for the thread that runs is elsewhere. If it has come there meanwhile, that is done.
  bool is_told_elsewhere(sched::TreeEntity& running) const;
  /// BOSK_MEMORY_MOVES, unless somebody has said otherwise.
  void set_memory_moves(base::MemoryMoves moves) {
    memory_moves_.store(moves, std::memory_order_relaxed);
  }
  base::MemoryMoves memory_moves() const { return memory_moves_.load(std::memory_order_relaxed); }
  /// Threads go where their memory is.
  bool moves_threads() const { return base::moves_threads(memory_moves()); }
  /// Who takes these looks at threads and memory together, with preemption on, because books are locked and pages moved then.
  void set_memory_requests(MemoryRequests* requests) { memory_requests_ = requests; }
  /// Memory goes where its threads are; who takes requests decides when.
  bool moves_data() const {
    return memory_requests_ != nullptr && memory_moves() != base::MemoryMoves::kThreads &&
           minds_memory();
  }
  /// Some policy goes by it.
  bool minds_memory() const { return memory_matters_.load(std::memory_order_relaxed); }

  // Before any worker is there.
  void set_clock(const ClockHook& clock) { clock_ = clock; }
  /// Without one, running threads come back only as they please, and bubbles that have some are not
  /// pulled.
  void set_recall(const sched::RecallHook& recall) { recall_ = recall; }
  void set_damping(const Damping& damping) { damping_ = damping; }
  /// All policies say that bubbles may lend threads (PolicyOps::lends).
  bool lends() const {
    for (uint32_t i = 0; i < n_active_; ++i)
      if (!active_[i].ops->lends) return false;
    return true;
  }
  /// By who lets a bubble burst without asking a policy, before.
  void note_burst(sched::NestedBubble& bubble, uint32_t domain) const;

  /// A policy for bubbles whose `policy` field is the number that this returns, whatever level they are
  /// at, and for what is in them as far as nothing else is chosen there. The same policy with the same
  /// argument has one number. 0: `error` says why not. With preemption on; any thread.
  static constexpr uint32_t kMostChosen = 16;
  uint8_t choose(const PlannedPolicy& policy, topology::Error* error);
  EvolutionCounts evolution_counts() const;

  /// Bubbles and threads that idle PUs have taken from others' queues, by policies' rules or pulled, and over how
  /// many levels in sum (to the smallest domain around both: 1 means siblings).
  uint64_t steals() const { return steals_.load(std::memory_order_relaxed); }
  uint64_t steal_levels() const { return steal_levels_.load(std::memory_order_relaxed); }
  /// The same by the depth of that domain; the last entry is for all that are deeper, too.
  static constexpr uint32_t kStealDepths = 16;
  uint64_t steals_within(uint32_t depth) const {
    return steals_within_[depth].load(std::memory_order_relaxed);
  }

  /// A queue of the policies' own that no search looks at, with kHolderBit; kNone: there are enough.
  /// What the verdict kKeep or a placement puts there comes out by release_held() only; by then its
  /// bubble may have taken it back. Any thread, with preemption off.
  uint32_t make_holder() { return holders_.add(2 * machine().n_domains); }
  bool has_holder(uint32_t holder) const { return holders_.of(holder) != nullptr; }
  uint32_t held(uint32_t holder);
  /// Lets up to `most` entities out of a holder, best first, to the domain; `only`: that one. Returns
  /// how many it took out. O(1) each; O(entities in the holder) for one by name.
  uint32_t release_held(uint32_t holder, uint32_t most, uint32_t domain,
                        EntityToken only = nullptr);

  /// In the child of a fork: nobody else is left. What was queued or held is forgotten.
  void forget_after_fork();

  /// Load booked on a domain and all below it, in kLoadUnit.
  uint64_t booked(uint32_t domain) const { return booked_[domain].load(std::memory_order_relaxed); }

 private:
  struct Active {
    const PolicyOps* ops;
    const topology::Level* level;
    void* state;
  };

  /// What became of a bubble that was to be distributed.
  enum class Outcome : uint8_t { kDone, kBurst, kWait };

  const topology::Machine& machine() const { return queues_->machine(); }
  const Active& in_charge(uint32_t domain) const;
  /// Of a gang (sched::Relation::kGang), or of what is in one, the policy gang is.
  const Active& in_charge(const sched::TreeEntity& entity, uint32_t domain) const;
  /// About a bubble in hand. False: it waits, for what is in `*domain` (where it was found, or its seat above).
  bool decide(sched::NestedBubble& bubble, const FoundBubble& found, uint32_t* domain);
  FoundBubble describe(const sched::NestedBubble& bubble, uint32_t domain, uint32_t pu) const;
  Outcome distribute(sched::NestedBubble& bubble, uint32_t* domain, const Active& active,
                     uint32_t pu);
  bool answer_for(const Active& active, const WorkScratch& s, uint32_t domain, uint32_t pu,
                  bool rose, PlacementList* answer) const;
  bool snapshot(sched::NestedBubble& root, WorkScratch& s) const;
  bool accept(const WorkScratch& s, uint32_t domain, const char* policy) const;
  bool carry_out(sched::NestedBubble& root, sched::RunQueue& queue, WorkScratch& s);
  void keep(sched::NestedBubble& bubble, uint32_t holder, uint64_t load);
  void book(sched::TreeEntity& entity, uint64_t load, uint32_t domain);
  void unbook(sched::TreeEntity& entity);
  void move_booking(sched::TreeEntity& thread, uint32_t domain);
  void count_load(uint32_t domain, uint64_t load, bool comes) const;
  // engine_chosen.cpp
  bool idle_chosen(uint32_t pu);
  void stop_chosen();
  void forget_chosen_after_fork();
  // engine_memory.cpp
  bool list_present(sched::NestedBubble& bubble, PresentScratch& s) const;
  uint32_t move_to_wake_domain(sched::TreeEntity& thread);
  bool decided_on(sched::NestedBubble& bubble, uint32_t* domain, const Active** active) const;
  bool carry_out_and_tell(sched::NestedBubble& bubble, sched::RunQueue& queue, WorkScratch& s,
                          const Active& active);
  bool look_at_memory(const sched::TreeEntity& running, uint64_t time);
  void note_idle();
  // engine_waiting.cpp
  bool make_rooms();
  void clear_rooms();
  void free_rooms();
  bool reconsider(uint32_t pu);
  bool reconsider_afar(uint32_t pu);
  bool reconsider_room(sched::RunQueue& room, uint32_t pu,
                       const topology::Domain* around = nullptr);
  bool may_start_on(const sched::NestedBubble& gang, const topology::Domain& around) const;
  void note_gang_waits(const FoundBubble& found) {
    // relaxed: who misses it looks again.
    if (found.relation == sched::Relation::kGang && !gangs_wait_.load(std::memory_order_relaxed))
      gangs_wait_.store(true, std::memory_order_relaxed);
  }
  // engine_steal.cpp
  bool steal(uint32_t pu);
  void note_steal(sched::TreeEntity& entity, uint32_t pu, const topology::Domain& common);
  bool keeps_memory(const topology::Domain& from, uint32_t pu, const StealRule& rule,
                    uint32_t* here, uint32_t* there) const;
  bool steal_within(const topology::Domain& scope, const topology::Domain& seen, uint32_t pu,
                    const StealRule& rule, bool any);
  bool steal_around(const topology::Domain& ring, const topology::Domain& seen, uint32_t pu,
                    const StealRule& rule, bool bubbles, bool any);
  bool bring(sched::TreeEntity& taken, const topology::Domain& to);
  sched::TreeEntity* take_from(sched::RunQueue& queue, uint32_t pu, const StealRule& rule,
                               bool bubbles) const;
  // engine_evolution.cpp, engine_pull.cpp
  struct Pull;
  struct Judgement;
  enum class Way : uint8_t { kLeave, kThread, kClose, kWiden };
  enum class Count : uint8_t {
    kMoved,
    kRegenerated,
    kWidened,
    kThreads,
    kSettled,
    kEnding,
    kSlices,
    kRenewed,
    kPhases,
    kCounts
  };
  uint64_t now() const;
  bool pull_below(const topology::Domain& d, Pull& pull);
  bool pull_from(sched::RunQueue& queue, Pull& pull);
  bool pull_one(sched::RunQueue& queue, Pull& pull);
  bool pull_closed(sched::NestedBubble& bubble, sched::RunQueue& queue, Pull& pull);
  bool pull_open(sched::NestedBubble& bubble, sched::TreeEntity& entity, sched::RunQueue& queue,
                 Pull& pull);
  Way choose_way(sched::NestedBubble& bubble, const sched::TreeEntity& entity, const Pull& pull);
  void judge(sched::NestedBubble& bubble, Judgement& j) const;
  Judgement judge(sched::NestedBubble& bubble) const;
  bool settled(const sched::NestedBubble& bubble, const Pull& pull);
  bool may_move(const sched::NestedBubble& bubble, const topology::Domain& to) const;
  bool may_go_to(const sched::NestedBubble& bubble, const topology::Domain& to) const;
  void let_wait(sched::NestedBubble& gang, sched::RunQueue& queue, Pull& pull);
  void note_pull(sched::NestedBubble& bubble, const Pull& pull) const;
  void let_alone(sched::NestedBubble& bubble) const;
  bool worth(uint64_t remaining);
  /// The smallest domain that the bubble may not leave: where its outermost one was woken, or where it or one around it is held.
  uint32_t scope_of(const sched::NestedBubble& bubble) const;
  uint32_t held_on(const sched::NestedBubble& bubble) const;  ///< itself; kNone: nowhere
  /// What is queued there may be taken by the PU, as far as the strength of affinity of bubbles goes. The caller holds the queue's lock.
  bool may_be_taken_by(const sched::TreeEntity& entity, uint32_t pu) const;
  bool in_scope(const sched::NestedBubble& bubble, const topology::Domain& d) const;
  void learn(const sched::TreeEntity& entity);
  void close(sched::NestedBubble& bubble, sched::RunQueue* to);
  uint64_t remaining_ns(const sched::TreeEntity& entity) const;
  bool has_rival(sched::NestedBubble& bubble) const;
  bool due(const sched::NestedBubble& bubble, uint64_t now) const;
  bool redistribute_queue(sched::RunQueue& queue, const topology::Domain& below, uint32_t phase,
                          uint32_t* closed);
  void count(Count what, uint64_t by = 1) {
    counts_[static_cast<uint32_t>(what)].fetch_add(by, std::memory_order_relaxed);
  }
  uint64_t counted(Count what) const {
    return counts_[static_cast<uint32_t>(what)].load(std::memory_order_relaxed);
  }

  void announce(uint32_t domain, uint32_t count) const {
    if (released_.call != nullptr && count != 0) released_.call(released_.context, domain, count);
  }

  sched::DomainQueues* queues_ = nullptr;
  ReleasedHook released_;
  std::atomic<uint64_t>* booked_ = nullptr;
  Active active_[PolicyPlan::kMost] = {};
  uint32_t n_active_ = 0;
  Active gangs_ = {};  ///< the policy for bubbles that are gangs by their relation
  struct Chosen {
    Active active;
    char argument[base::PolicyClause::kWordMax + 1];
  };
  Chosen chosen_[kMostChosen] = {};
  std::atomic<uint32_t> n_chosen_{0};  ///< those are constant
  base::SpinLock choosing_;
  /// Per domain a queue that the search does not look at: bubbles that wait there (Action::kWait).
  sched::RunQueue* rooms_ = nullptr;
  std::atomic<bool> gangs_wait_{false};  ///< one by its relation has had to, since start()
  std::atomic<uint64_t> steals_{0};
  std::atomic<uint64_t> steal_levels_{0};
  std::atomic<uint64_t> steals_within_[kStealDepths] = {};
  HolderSet holders_;
  ScratchPool<WorkScratch> scratch_;
  ScratchPool<PresentScratch> present_;

  ClockHook clock_;
  sched::RecallHook recall_;
  Damping damping_;
  /// Figures and hints, nothing is published with them: relaxed.
  std::atomic<uint32_t> memory_told_{
      0};  ///< calls of memory_changed(), the trigger in the lowest bits
  std::atomic<uint64_t> idle_told_{0};       ///< when a PU was idle last, for kIdle
  std::atomic<bool> memory_matters_{false};  ///< some policy has the hook `gain`
  MemoryRequests* memory_requests_ = nullptr;
  std::atomic<base::MemoryMoves> memory_moves_{base::MemoryMoves::kAuto};
  std::atomic<uint64_t> ns_per_load_{0};  ///< learned, × kLoadUnit; 0: not known
  std::atomic<uint64_t> redistribution_ns_{0};
  std::atomic<uint64_t> next_redistribution_{0};
  std::atomic<uint32_t> phase_{0};
  std::atomic<uint32_t> phase_domain_{0};
  // On a line of their own: what is above is read by every search.
  alignas(base::kCacheLine) std::atomic<uint32_t> turn_{0};  ///< where idle searches begin
  std::atomic<uint64_t> counts_[static_cast<uint32_t>(Count::kCounts)] = {};
  std::atomic<uint64_t> memory_looked_[kMemoryTriggers] = {};
  std::atomic<uint64_t> memory_closed_[kMemoryTriggers] = {};
};

}  // namespace bosk::policies
