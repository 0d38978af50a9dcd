// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Corrective regeneration (2005 §3.3.3): what an idle PU brings into its reach, and what it does not.
//
// The signs (sched/work_signs.h) lead from the idle PU to queues that hold something, the nearest first:
// up one level, down into each child that has the sign, up again. Among equals every search begins
// elsewhere, so that idle PUs do not all come to the same queue. On a queue the first entities are
// candidates, and what becomes of each depends on the innermost open bubble around it:
//
//   closed bubble          moves as it is: nothing of it runs
//   open bubble that fits  closes with the common domain as its home, and bursts again when the idle PU
//                          finds it there; so threads of one bubble stay together
//   larger open bubble     what is queued of it comes out on the common domain, and nothing waits for
//                          its running threads
//   open bubble whose      the queued thread moves up to the common domain: its bubble is spread over
//   area has the PU in it  more than that already
//
// "Fits": the pieces are no more than the PUs of the idle side. A large bubble that was moved as a whole
// would leave the other side idle in turn.
#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "policies/engine.h"

namespace bosk::policies {

using sched::BubbleState;
using sched::NestedBubble;
using sched::RunQueue;
using sched::TreeEntity;
using sched::WorkSigns;
using topology::Domain;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint32_t kMostCandidates = 16;
/// Of one queue; what comes first there has waited longest.
constexpr uint32_t kMostOfAQueue = 4;
/// Members of a bubble that are looked at to judge it; the queue is locked meanwhile.
constexpr uint32_t kMostJudged = 64;
constexpr uint32_t kMostDoublings = 20;

}  // namespace

/// One search of one idle PU.
struct PolicyEngine::Pull {
  uint32_t pu;
  uint64_t now;
  uint32_t turn;
  const Domain* common = nullptr;  ///< smallest domain around the PU and what is looked at
  const Domain* side = nullptr;    ///< its child that has the PU
  uint32_t candidates = kMostCandidates;
  uint32_t looked = 0;
  bool fetch = false;     ///< running threads may be recalled
  bool progress = false;  ///< the PU can find something now
};

/// What is in a bubble, as far as it was looked at.
struct PolicyEngine::Judgement {
  uint32_t pieces = 0;  ///< threads that do not block, ghosts
  uint32_t running = 0;
  uint64_t remaining = 0;  ///< kUnknown64: of one at least nobody knows
  uint32_t looked = 0;
};

bool PolicyEngine::pull(uint32_t pu, uint32_t* looked) {
  Pull pull{.pu = pu, .now = 0, .turn = turn_.load(kRelaxed)};
  const Domain* side = &machine().pu(pu);
  bool done = false;
  for (const Domain* d = side->parent; d != nullptr && !done && pull.candidates != 0;
       side = d, d = d->parent) {
    // What idle PUs take there, that policy has said already.
    const PolicyOps* ops = in_charge(d->id).ops;
    if (ops->steal != nullptr || ops == gangs_.ops) continue;
    pull.common = d;
    pull.side = side;
    done = pull_below(*d, pull);
  }
  // Not by those who poll a machine where nothing is queued.
  if (pull.candidates != kMostCandidates || done) turn_.store(pull.turn + 1, kRelaxed);
  if (looked != nullptr) *looked = pull.looked;
  return pull.progress;
}

/// Looks through the children of `d`, but for the side of the PU. True: it has done something.
bool PolicyEngine::pull_below(const Domain& d, Pull& pull) {
  WorkSigns& signs = queues_->signs();
  ++pull.looked;
  const uint64_t bits = signs.bits(d.id);
  const uint32_t group = WorkSigns::group(d);
  const bool outside = &d != pull.common;
  if (outside && (bits & WorkSigns::Sign::kOwnQueue) != 0 && pull_from(queues_->of(d.id), pull))
    return true;
  const uint64_t children = bits & ~WorkSigns::Sign::kOwnQueue;
  // From a place of its own on, then round.
  const uint32_t start =
      pull.turn % std::max(1u, std::min(d.n_children, WorkSigns::Sign::kChildBits));
  for (const uint64_t part :
       {children >> start << start, children & ((uint64_t{1} << start) - 1)}) {
    for (uint64_t left = part; left != 0 && pull.candidates != 0; left &= left - 1) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(left));
      for (uint32_t i = bit * group; i < (bit + 1) * group && i < d.n_children; ++i) {
        const Domain& child = d.first_child[i];
        if (&child == pull.side) continue;
        if (signs.bits(child.id) != 0 && pull_below(child, pull)) return true;
      }
      // The own side is not looked through, but what is there was found before it became idle.
      signs.lower(d, bit);
    }
  }
  return false;
}

bool PolicyEngine::pull_from(RunQueue& queue, Pull& pull) {
  ++pull.looked;
  queue.lock.lock();
  if (queue.first == nullptr) {
    queue.retract_locked();
    queue.lock.unlock();
    return false;
  }
  if (pull.now == 0) pull.now = now();
  // First those for whom nobody must be fetched.
  for (const bool fetch : {false, true}) {
    pull.fetch = fetch;
    if (pull_one(queue, pull)) return true;
  }
  queue.lock.unlock();
  return false;
}

/// The queue is locked; unlocked if something was moved.
bool PolicyEngine::pull_one(RunQueue& queue, Pull& pull) {
  uint32_t most = std::min(kMostOfAQueue, pull.candidates);
  for (sched::Entity* e = queue.first; e != nullptr && most != 0; e = e->next, --most) {
    auto* entity = static_cast<TreeEntity*>(e);
    NestedBubble* itself = sched::as_bubble(entity);
    const bool closed = itself != nullptr && (!itself->serving || itself->serves_closed);
    NestedBubble* around = itself != nullptr ? itself : entity->bubble;
    if (around == nullptr) continue;  // it was put here by who knows why
    if (pull.fetch) --pull.candidates;
    if (closed && !pull.fetch && may_start_on(*itself, *pull.common)) {
      let_wait(*itself, queue, pull);
      return true;
    }
    if (!may_move(*around, *pull.common) || (closed && pull.fetch)) continue;
    if (closed ? pull_closed(*around, queue, pull) : pull_open(*around, *entity, queue, pull))
      return true;
  }
  return false;
}

/// Nothing leaves the domain where its outermost bubble was woken, nor a bubble that is open elsewhere
/// and has a relation to keep, nor a gang: gangs are dealt with as such.
bool PolicyEngine::may_move(const NestedBubble& bubble, const Domain& to) const {
  return bubble.relation != sched::Relation::kGang && may_go_to(bubble, to);
}

/// A gang that has not started may, as soon as there are PUs for all of it.
bool PolicyEngine::may_start_on(const NestedBubble& bubble, const Domain& around) const {
  return bubble.relation == sched::Relation::kGang && may_go_to(bubble, around);
}

bool PolicyEngine::may_go_to(const NestedBubble& bubble, const Domain& to) const {
  if (!in_scope(bubble, to)) return false;
  for (const NestedBubble* around = bubble.bubble; around != nullptr; around = around->bubble)
    if (around->relation != sched::Relation::kNone) return false;
  return true;
}

/// False: it is to be let alone for a while.
bool PolicyEngine::settled(const NestedBubble& bubble, const Pull& pull) {
  if (bubble.evolution.settled_until.load(kRelaxed) <= pull.now) return true;
  count(Count::kSettled);
  return false;
}

void PolicyEngine::note_pull(NestedBubble& bubble, const Pull& pull) const {
  sched::Evolution& e = bubble.evolution;
  const uint32_t pulls = e.pulls.load(kRelaxed);
  e.pulls.store(pulls + 1, kRelaxed);
  e.settled_until.store(pull.now + (damping_.settle_ns << std::min(pulls, kMostDoublings)),
                        kRelaxed);
}

bool PolicyEngine::worth(uint64_t remaining) {
  if (remaining >= damping_.worth_ns) return true;
  count(Count::kEnding);
  return false;
}

/// A gang on a locked queue where nobody has come upon it: all PUs there are busy. It waits as if one had, and the PU asks
/// for it from there.
void PolicyEngine::let_wait(NestedBubble& gang, RunQueue& queue, Pull& pull) {
  queue.remove_locked(&gang);
  queue.lock.unlock();
  RunQueue& room = rooms_[queue.domain];
  gangs_wait_.store(true, kRelaxed);
  sched::requeue(gang, room);
  pull.progress = reconsider_room(room, pull.pu, pull.common);
}

bool PolicyEngine::pull_closed(NestedBubble& bubble, RunQueue& queue, Pull& pull) {
  if (!settled(bubble, pull)) return false;
  uint64_t remaining = remaining_ns(bubble);
  if (remaining == sched::kUnknown64) {
    base::SpinGuard guard(bubble.lock);
    remaining = judge(bubble).remaining;
  }
  if (!worth(remaining)) return false;
  bubble.serving = bubble.serves_closed = false;
  queue.remove_locked(&bubble);
  queue.lock.unlock();
  // It is ours, as if we had found it.
  unbook(bubble);
  note_pull(bubble, pull);
  note_steal(bubble, pull.pu, *pull.common);
  count(Count::kMoved);
  RunQueue& to = queues_->of(pull.common->id);
  bubble.home.store(&to, kRelaxed);
  RunQueue* at = sched::requeue(bubble, to);
  if (at != nullptr) announce(at->domain, 1);
  pull.progress = at == &to;
  return true;
}

/// The bubble is locked, and a queue that keeps it from going away. Depth first, outer locks held.
void PolicyEngine::judge(NestedBubble& bubble, Judgement& j) const {
  const auto add = [&](uint64_t remaining) {
    j.remaining = remaining == sched::kUnknown64 || j.remaining == sched::kUnknown64
                      ? sched::kUnknown64
                      : j.remaining + remaining;
  };
  if (const uint32_t ghosts = bubble.ghosts_left(); ghosts != 0) {
    j.pieces += ghosts;
    add(sched::kUnknown64);
  }
  uint32_t left = bubble.member_count;
  for (TreeEntity* m = bubble.first_member; m != nullptr; m = m->next_member, --left) {
    if (++j.looked > kMostJudged) {
      j.pieces += left;
      add(sched::kUnknown64);
      return;
    }
    if (NestedBubble* inner = sched::as_bubble(m)) {
      base::SpinGuard guard(inner->lock);
      judge(*inner, j);
      continue;
    }
    add(remaining_ns(*m));
    const sched::Activity activity = m->activity.load(kRelaxed);
    j.pieces += activity != sched::Activity::kBlocked;
    j.running += activity == sched::Activity::kRunning;
  }
}

PolicyEngine::Judgement PolicyEngine::judge(NestedBubble& bubble) const {
  Judgement j;
  judge(bubble, j);
  return j;
}

/// What to do with an open bubble because of an entity on the queue, both locked. If it is to be closed
/// or widened, that has begun.
PolicyEngine::Way PolicyEngine::choose_way(NestedBubble& bubble, const TreeEntity& entity,
                                           const Pull& pull) {
  base::SpinGuard guard(bubble.lock);
  if (bubble.state != BubbleState::kBurst) return Way::kLeave;
  if (machine().domain_array[bubble.burst_on->domain].contains_pu(pull.pu)) {
    // Beside another of its own kind it would be in the way.
    const uint32_t* core_of = machine().level(topology::Kind::kCore)->of_pu;
    const uint32_t here = machine().domain_array[entity.last_queue->domain].first_pu;
    const bool stays = bubble.relation == sched::Relation::kMemoryBesideCompute &&
                       core_of[here] != core_of[pull.pu];
    return &entity != &bubble && !stays && worth(remaining_ns(entity)) ? Way::kThread : Way::kLeave;
  }
  const Judgement j = judge(bubble);
  if (!worth(j.remaining)) return Way::kLeave;
  const bool fits = j.pieces <= pull.side->n_pus();
  if (!fits && bubble.relation != sched::Relation::kNone) return Way::kLeave;
  // The next one of an open sequence is to find the caches as the one before has left them.
  if (bubble.relation == sched::Relation::kSequence) return Way::kLeave;
  if (fits) {
    if (!pull.fetch && j.running != 0) return Way::kLeave;
    if (!settled(bubble, pull)) return Way::kLeave;
    // To fetch more than are waiting is not worth it; and there may be nobody who can fetch them.
    if (j.running != 0 && (recall_.call == nullptr || 2 * j.running > j.pieces)) return Way::kLeave;
  }
  sched::begin_closing_locked(bubble);
  return fits ? Way::kClose : Way::kWiden;
}

bool PolicyEngine::pull_open(NestedBubble& bubble, TreeEntity& entity, RunQueue& queue,
                             Pull& pull) {
  RunQueue& to = queues_->of(pull.common->id);
  const Way way = choose_way(bubble, entity, pull);
  if (way == Way::kLeave) return false;
  if (way == Way::kThread) queue.remove_locked(&entity);
  queue.lock.unlock();
  switch (way) {
    case Way::kThread: {
      // Taken as if to be run, and put back elsewhere.
      count(Count::kThreads);
      note_steal(entity, pull.pu, *pull.common);
      RunQueue* at = sched::requeue(entity, to);
      if (at != nullptr) announce(at->domain, 1);
      pull.progress = at == &to;
      break;
    }
    case Way::kClose:
      unbook(bubble);
      note_pull(bubble, pull);
      note_steal(bubble, pull.pu, *pull.common);
      count(Count::kRegenerated);
      pull.progress = sched::close_begun(bubble, &to, recall_);
      if (pull.progress) announce(to.domain, 1);
      break;
    case Way::kWiden: {
      count(Count::kWidened);
      note_steal(bubble, pull.pu, *pull.common);
      const uint32_t ghosts = bubble.ghosts_left();
      const uint32_t out = sched::widen_begun(bubble, to) + ghosts;
      announce(to.domain, out);
      pull.progress = out != 0;
      break;
    }
    case Way::kLeave:
      break;
  }
  return true;
}

}  // namespace bosk::policies
