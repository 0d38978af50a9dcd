// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles with ghosts: publishing, finding, stealing, running and joining them. Their threads: ready_threads.cpp.
#include <stdlib.h>

#include <bit>

#include "base/assert.h"
#include "base/message.h"
#include "sched/configuration.h"
#include "sched/preemption.h"
#include "sched/scheduler.h"

namespace bosk::sched {
namespace {

constexpr uint32_t kFirstCapacity = 256;
constexpr uint32_t kMostShared = 256;  // ghosts in a share

/// Doubles the list. The old array is not freed: thieves may be reading it; the waste is at most the
/// size of the last one.
bool grow_open_list(Worker* w) {
  const uint32_t capacity = w->open_capacity == 0 ? kFirstCapacity : w->open_capacity * 2;
  auto* bigger = static_cast<std::atomic<Bubble*>*>(calloc(capacity, sizeof(std::atomic<Bubble*>)));
  if (bigger == nullptr) return false;
  auto* old = w->open_list.load(std::memory_order_relaxed);
  const uint32_t count = w->open_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    bigger[i].store(old[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  w->open_list.store(bigger, std::memory_order_release);
  w->open_capacity = capacity;
  return true;
}

}  // namespace

void publish_bubble(Worker* w, Bubble* bubble) {
  // relaxed: before the barrier in offer(), as the bubble's entry; who goes to sleep looks after its own.
  if (BOSK_UNLIKELY(!w->pool->has_had_ghosts.load(std::memory_order_relaxed)))
    w->pool->has_had_ghosts.store(true, std::memory_order_relaxed);
  uint32_t count = w->open_count.load(std::memory_order_relaxed);
  auto* list = w->open_list.load(std::memory_order_relaxed);
  while (count > 0 && list[count - 1].load(std::memory_order_relaxed)->ghosts.left() == 0) --count;
  if (BOSK_UNLIKELY(count >= w->open_capacity)) {
    w->open_count.store(count, std::memory_order_relaxed);
    // Unpublished, the opener runs all ghosts itself: slower, and members that wait for one another
    // by spinning would not progress; but the opener has memory for a list long before that.
    if (!grow_open_list(w)) return;
    list = w->open_list.load(std::memory_order_relaxed);
  }
  // release: the team may be new, and a thief may find it by way of an older count.
  list[count].store(bubble, std::memory_order_release);
  // release: a thief that sees the count sees the entry.
  w->open_count.store(count + 1, std::memory_order_release);
  offer(w, bubble);
}

void retire_bubble(Worker* w, Bubble* bubble) {
  const uint32_t count = w->open_count.load(std::memory_order_relaxed);
  if (count > 0 && w->open_list.load(std::memory_order_relaxed)[count - 1].load(
                       std::memory_order_relaxed) == bubble)
    w->open_count.store(count - 1, std::memory_order_relaxed);
}

Bubble* newest_open_bubble_below(Worker* w, uint32_t count) {
  auto* list = w->open_list.load(std::memory_order_relaxed);
  while (count > 0 && !has_ghosts_of(w, list[count - 1].load(std::memory_order_relaxed))) --count;
  w->open_count.store(count, std::memory_order_relaxed);
  return count == 0 ? nullptr : list[count - 1].load(std::memory_order_relaxed);
}

bool worth_taking(Worker* w, Bubble* bubble) {
  // The bubble may be recycled while we look; the claim is then refused.
  w->found_share = nullptr;
  w->found_generation = bubble->ghosts.generation();
  return bubble->ghosts.left() != 0 && may_take(w, bubble) && may_run(w, bubble);
}

/// The same for what the victim took into its share.
static bool worth_taking_share(Worker* w, Worker* victim) {
  w->found_look = victim->share.look();
  w->found_share = &victim->share;
  return w->found_look && may_take(w, w->found_look.team) && may_run(w, w->found_look.team);
}

/// What a worker of another node takes it takes whole, for its node, but no more than has a PU each there: the rest into its share,
/// where the others there find it. So members that leave their home stay together.
static Claim claim_whole(Worker* w, Bubble* bubble) {
  const uint32_t pus = pus_of_node(w);
  const uint32_t most = pus < kMostShared ? pus : kMostShared;
  Claim claim = bubble->ghosts.claim_of(w->found_generation, most);
  if (!claim) return claim;
  // More than half of the team, or of what there is room for: the claim acquired the bubble's fields.
  const bool adopts = claim.count == most || claim.count * 2 >= bubble->size;
  const uint32_t taken = claim.count;
  if (taken > 1) {
    w->share.open(bubble, {claim.index + 1, taken - 1});
    claim.count = 1;
  }
  if (adopts)
    adopt(w, bubble, bubble->near.load(std::memory_order_relaxed), taken);
  else if (taken > 1)
    call_mates(w, taken - 1, 0);
  return claim;
}

static Claim claim_at_home(const Worker* w, Bubble* bubble, uint32_t generation) {
  const Claim claim = bubble->ghosts.claim_of(generation, 1);
  // Nobody has come for it from where it had been adopted: that is to be earned again.
  if (claim && BOSK_UNLIKELY(is_for_adopter(w, bubble))) bubble->adoption.forget();
  return claim;
}

Claim claim_found(Worker* w, Bubble* bubble) {
  if (w->found_share != nullptr) return w->found_share->take(w->found_look);
  // Until the claim the object may be recycled for another team: what is read of it before is a preference. Who polls for members that
  // have not begun calls workers for them (spins/), which look for them in the bubble only.
  if (BOSK_UNLIKELY(!is_at_home(w, bubble)) && w->share.empty() &&
      bubble->together.load(std::memory_order_relaxed) == Together::kNo)
    return claim_whole(w, bubble);
  return claim_at_home(w, bubble, w->found_generation);
}

Claim claim_opened_here(Worker* w, Bubble* bubble) {
  const uint32_t generation = bubble->ghosts.generation();
  return has_ghosts_of(w, bubble) ? claim_at_home(w, bubble, generation) : Claim{};
}

Claim claim_by_way_of_share(Thread* me, Bubble* bubble) {
  Worker* w = enter(me);
  Claim claim = w->share.take_of(bubble);
  if (!claim) {
    const uint32_t due = bubble->ghosts.left() >> bubble->share_shift;
    const uint32_t most = due < kMostShared ? due : kMostShared;
    claim = bubble->ghosts.claim(most > 1 && w->share.empty() ? most : 1);
    if (claim.count > 1) {
      w->share.open(bubble, {claim.index + 1, claim.count - 1});
      claim.count = 1;
      offer(w, bubble);
    }
  }
  leave(me);
  return claim;
}

namespace {

/// What a worker has taken whole from another node is its own node's now: who is at home there leaves it to that one's workers for a
/// while.
bool is_share_near(const Worker* w, const Worker* owner, const Bubble* team) {
  if (is_at_home(owner, team)) return is_near(w, team);
  return node_of_worker(owner) == node_of_worker(w);
}

/// Of the ghosts of other nodes those of a team that can come whole: none has begun, or more are left than there is room for. Later the rest of one
/// that has begun at home, or that somebody else has adopted. Of each kind the team that has most.
struct Choice {
  Bubble* bubble = nullptr;
  uint32_t left = 0;
  bool is_whole = false;
  uint32_t generation = 0;
  uint32_t victim = 0;

  void offer(const Worker* w, Far far, Bubble* other, uint32_t from) {
    const uint32_t others = other->ghosts.left();
    const bool whole = !other->adoption.is_known() &&
                       (others + 1 >= other->size_seen() || others >= pus_of_node(w));
    if (far != Far::kEver && !(whole ? may_go_far(w) : may_break_up(w))) return;
    if (whole != is_whole ? whole : others > left)
      *this = {other, others, whole, w->found_generation, from};
  }
  Bubble* found_by(Worker* w) const {
    w->found_share = nullptr;
    w->found_generation = generation;
    w->last_victim = victim;
    return bubble;
  }
};

}  // namespace

Bubble* find_bubble(Worker* w, Far far, bool* is_far) {
  Pool* pool = w->pool;
  const uint32_t workers = pool->worker_count.load(std::memory_order_acquire);
  // Elsewhere the bubble's line need not be fetched before the claim. relaxed: is_near() looks again.
  const bool placed = pool->machine.load(std::memory_order_relaxed) != nullptr;
  *is_far = false;
  if (BOSK_UNLIKELY(!pool->has_had_ghosts.load(std::memory_order_relaxed))) return nullptr;
  WorkerOrder order = order_from(w, w->last_victim, workers);
  Choice choice;
  Choice adopted;  // by another node than this one: after all else that is at home here
  uint32_t far_share = WorkerOrder::kEnd;
  for (uint32_t victim; (victim = order.next()) != WorkerOrder::kEnd;) {
    Worker* v = pool->worker(victim);
    if (v == nullptr || v == w) continue;
    if (worth_taking_share(w, v)) {
      if (BOSK_LIKELY(!placed) || is_share_near(w, v, w->found_look.team)) {
        w->last_victim = victim;
        return w->found_look.team;
      }
      if (far_share == WorkerOrder::kEnd) far_share = victim;
    }
    const uint32_t count = v->open_count.load(std::memory_order_acquire);
    if (count == 0) continue;
    auto* list = v->open_list.load(std::memory_order_acquire);
    // Outermost first: outer ghosts spread over the machine, inner ones stay where they were opened.
    for (uint32_t at = 0; at < count; ++at) {
      Bubble* bubble = list[at].load(std::memory_order_acquire);
      if (bubble == nullptr || !worth_taking(w, bubble)) continue;
      if (BOSK_UNLIKELY(placed) && !is_near(w, bubble)) {
        choice.offer(w, far, bubble, victim);
        continue;
      }
      if (BOSK_UNLIKELY(placed) && is_for_adopter(w, bubble)) {
        adopted.offer(w, Far::kEver, bubble, victim);
        continue;
      }
      w->last_victim = victim;
      return bubble;
    }
  }
  if (adopted.bubble != nullptr) return adopted.found_by(w);
  *is_far = true;
  if (choice.bubble == nullptr) {
    // Members of what has been taken whole come last.
    if (far_share == WorkerOrder::kEnd || (far != Far::kEver && !may_break_up(w)) ||
        !worth_taking_share(w, pool->worker(far_share)))
      return nullptr;
    w->last_victim = far_share;
    return w->found_look.team;
  }
  return choice.found_by(w);
}

Bubble* steal_bubble(Worker* w) {
  bool is_far;
  Bubble* bubble = find_bubble(w, Far::kIfItIsTime, &is_far);
  if (bubble != nullptr) w->far_wait.taken();
  return bubble;
}

static void opener_left(void* argument, Worker* w) {
  auto* opener = static_cast<Thread*>(argument);
  Bubble* bubble = opener->bubble;
  if (bubble->pending.suspend(static_cast<uint32_t>(opener->wait_value))) {
    make_ready(opener, w, true);
    return;
  }
  // Work that was queued just before would otherwise wait for somebody else. It may be another team's
  // by now, and so may the opener.
  if (BOSK_UNLIKELY(bubble->queued_work.load(std::memory_order_seq_cst) != 0))
    pull_opener(w, bubble);
}

void pull_opener(Worker* w, Bubble* bubble) {
  if (bubble->pending.pull()) make_ready(bubble->opener, w, false);
}

bool join_bubble(Thread* me, Bubble* bubble, uint32_t own) {
  constexpr int kSpins = 256;
  for (int spins = 0; spins < kSpins; ++spins) {
    if (bubble->pending.try_last(own)) return true;
    if (!me->worker->ready.empty_hint() || bubble->ghosts.left() != 0 || !me->worker->share.empty())
      break;
    base::cpu_pause();
  }
  me->wait_value = own;
  Worker* w = me->worker;
  Bubble* outer_root = w->help_root.load(std::memory_order_relaxed);
  // Whose turn it is, not who waits, says what a worker runs that gangs need.
  const bool stays_near = me->pinned != nullptr && BOSK_LIKELY(!gangs_exist());
  if (stays_near) w->help_root.store(bubble, std::memory_order_release);
  block(me, {opener_left, me});
  if (stays_near) me->worker->help_root.store(outer_root, std::memory_order_release);
  return bubble->pending.done();
}

}  // namespace bosk::sched
