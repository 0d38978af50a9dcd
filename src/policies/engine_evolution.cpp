// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Time slices, redistribution phases, and what both and idle workers need to know of time and loads.
#include <time.h>

#include "base/assert.h"
#include "policies/decided.h"
#include "policies/engine.h"

namespace bosk::policies {

using sched::BubbleState;
using sched::NestedBubble;
using sched::RunQueue;
using sched::TreeEntity;
using topology::Domain;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
/// Entities of a queue that are looked at for somebody who waits behind a bubble; in a longer queue
/// somebody surely does.
constexpr uint32_t kMostRivals = 64;

/// Of a bubble that cannot go away meanwhile.
RunQueue* home_of(NestedBubble& bubble) {
  base::SpinGuard guard(bubble.lock);
  RunQueue* home = bubble.home.load(kRelaxed);
  return home != nullptr ? home : bubble.burst_on;
}

void note_waiting(const RunQueue& queue, FoundBubble* found) {
  // relaxed: a hint; who waits is asked for again by the next PU that has nothing to do.
  const int32_t waiting = queue.best.load(std::memory_order_relaxed);
  if (waiting == sched::kNoEntity) return;
  if (!found->others_wait || waiting > found->waiting_priority) found->waiting_priority = waiting;
  found->others_wait = true;
}

bool below(const Domain& d, const Domain& scope) {
  return d.depth >= scope.depth && scope.contains_pu(d.first_pu);
}

/// FoundBubble::load_inside, for bubbles of a few threads that nobody has dealt out before. The bubble is locked.
uint64_t load_inside(const NestedBubble& bubble) {
  constexpr uint32_t kMost = 8;
  if (bubble.member_count > kMost || bubble.booked_domain != sched::kUnknown32)
    return sched::kUnknown64;
  uint64_t sum = uint64_t{bubble.ghosts_left()} * kLoadUnit;
  for (const TreeEntity* m = bubble.first_member; m != nullptr; m = m->next_member) {
    if (m->whereabouts != sched::Whereabouts::kHeld) continue;
    if (m->kind == sched::EntityKind::kBubble || m->booked_domain != sched::kUnknown32)
      return sched::kUnknown64;
    sum += load_of(m->figures.load.load(std::memory_order_relaxed));
  }
  const uint32_t told = bubble.figures.load.load(std::memory_order_relaxed);
  return told != sched::kUnknown32 ? load_of(told) : sum;
}

}  // namespace

uint64_t PolicyEngine::now() const {
  if (clock_.call != nullptr) return clock_.call(clock_.context);
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

EvolutionCounts PolicyEngine::evolution_counts() const {
  return {.moved = counted(Count::kMoved),
          .regenerated = counted(Count::kRegenerated),
          .widened = counted(Count::kWidened),
          .threads = counted(Count::kThreads),
          .settled = counted(Count::kSettled),
          .ending = counted(Count::kEnding),
          .slices = counted(Count::kSlices),
          .renewed = counted(Count::kRenewed),
          .phases = counted(Count::kPhases)};
}

/// Before the bubble bursts. The clock is read for those that have a time slice only. What was decided about its threads holds
/// for this time.
void PolicyEngine::note_burst(NestedBubble& bubble, uint32_t domain) const {
  bubble.released = false;
  sched::Evolution& e = bubble.evolution;
  // Also where the bubble around it has taken it along.
  const uint32_t held = held_on(bubble);
  if (held == kNone || !below(machine().domain_array[domain], machine().domain_array[held]))
    e.anchor.store(domain, kRelaxed);
  e.phase.store(phase_.load(kRelaxed), kRelaxed);
  take_note(bubble, kDecided);
  if (e.slice_ns.load(kRelaxed) != 0) e.burst_at.store(now(), kRelaxed);
}

/// What one unit of load takes, from entities that have ended and of which load and time were known:
/// a mean that forgets. Updates that meet may lose one.
void PolicyEngine::learn(const TreeEntity& entity) {
  const uint32_t load = entity.figures.load.load(kRelaxed);
  const uint64_t ns = entity.figures.cpu_ns.load(kRelaxed);
  if (load == sched::kUnknown32 || load == 0 || ns == sched::kUnknown64) return;
  const uint64_t seen = ns / load * kLoadUnit + ns % load * kLoadUnit / load;
  const uint64_t mean = ns_per_load_.load(kRelaxed);
  const uint64_t next = mean == 0 ? seen : mean - mean / 8 + seen / 8;
  ns_per_load_.store(next != 0 ? next : 1, kRelaxed);
}

void PolicyEngine::done(TreeEntity& entity) {
  learn(entity);
  const uint32_t booked = std::atomic_ref(entity.booked_domain).load(kRelaxed);
  if (booked == sched::kUnknown32) return;
  const Active& active = in_charge(entity, booked);
  if (active.ops->done != nullptr)
    active.ops->done(active.state, &entity, booked, entity.booked_load);
  unbook(entity);
}

/// kUnknown64: nobody told its load, or none has ended yet that would say what a load is.
uint64_t PolicyEngine::remaining_ns(const TreeEntity& entity) const {
  const uint32_t load = entity.figures.load.load(kRelaxed);
  const uint64_t rate = ns_per_load_.load(kRelaxed);
  if (load == sched::kUnknown32 || rate == 0) return sched::kUnknown64;
  const uint64_t expected = load * (rate / kLoadUnit) + load * (rate % kLoadUnit) / kLoadUnit;
  const uint64_t spent = entity.figures.cpu_ns.load(kRelaxed);
  if (spent == sched::kUnknown64) return expected;
  return expected > spent ? expected - spent : 0;
}

/// Has the bubble had its time?
bool PolicyEngine::due(const NestedBubble& bubble, uint64_t now) const {
  const uint64_t slice = bubble.evolution.slice_ns.load(kRelaxed);
  return slice != 0 && now - bubble.evolution.burst_at.load(kRelaxed) >= slice;
}

/// Would anything else run if the bubble went to the end of the queue where it was released? Something
/// of its priority or above, on that queue or one above it, that is not its own.
bool PolicyEngine::has_rival(NestedBubble& bubble) const {
  RunQueue* home = home_of(bubble);
  const Domain* d = &machine().domain_array[home->domain];
  for (; d != nullptr; d = d->parent)
    if (rooms_[d->id].best.load(kRelaxed) >= bubble.priority && !rooms_[d->id].empty_hint())
      return true;
  d = &machine().domain_array[home->domain];
  while ((d = d->parent) != nullptr)
    if (queues_->of(d->id).best.load(kRelaxed) >= bubble.priority) return true;
  base::SpinGuard guard(home->lock);
  uint32_t looked = 0;
  for (sched::Entity* e = home->first; e != nullptr && e->priority >= bubble.priority;
       e = e->next) {
    const NestedBubble* around = static_cast<TreeEntity*>(e)->bubble;
    while (around != nullptr && around != &bubble) around = around->bubble;
    if ((around == nullptr && e != static_cast<const sched::Entity*>(&bubble)) ||
        ++looked == kMostRivals)
      return true;
  }
  return false;
}

FoundBubble PolicyEngine::describe(const NestedBubble& bubble, uint32_t domain, uint32_t pu) const {
  FoundBubble found{domain, pu, bubble.member_count, bubble.ghosts_left(), bubble.priority};
  found.token = static_cast<const TreeEntity*>(&bubble);
  found.relation = bubble.relation;
  found.released = bubble.released;
  // Those around it have burst: nobody takes them out of their bubbles.
  found.parent = static_cast<const TreeEntity*>(bubble.bubble);
  for (const NestedBubble* around = bubble.bubble; around != nullptr; around = around->bubble)
    ++found.depth;
  found.load = bubble.figures.load.load(std::memory_order_relaxed);
  found.load_inside = load_inside(bubble);
  found.booked = booked_;
  for (const Domain* d = &machine().domain_array[domain]; d != nullptr; d = d->parent)
    note_waiting(rooms_[d->id], &found);
  return found;
}

bool PolicyEngine::tick(NestedBubble& bubble, bool* slice_runs) {
  FoundBubble seen;
  {
    base::SpinGuard guard(bubble.lock);
    if (bubble.state != BubbleState::kBurst) return false;
    const uint32_t domain = bubble.burst_on->domain;
    seen = describe(bubble, domain, machine().domain_array[domain].first_pu);
  }
  // While all PUs are busy nobody finds what is queued. What is on a PU's own queue is the bubble's.
  for (const Domain* d = &machine().domain_array[seen.domain]; d != nullptr; d = d->parent)
    if (!d->is_pu() || d->parent == nullptr) note_waiting(queues_->of(d->id), &seen);
  const Active& active = in_charge(bubble, seen.domain);
  if (active.ops->tick == nullptr) return false;
  if (active.ops->tick(active.state, seen) != TickAnswer::kRegenerate) {
    if (slice_runs != nullptr && seen.others_wait && seen.waiting_priority >= seen.priority)
      *slice_runs = true;
    return false;
  }
  close(bubble, nullptr);
  return true;
}

void PolicyEngine::close(NestedBubble& bubble, RunQueue* to) {
  RunQueue* home = to != nullptr ? to : home_of(bubble);
  // From its home anybody might take it who is above that.
  if (held_on(bubble) != kNone && !in_scope(bubble, machine().domain_array[home->domain]))
    home = to = &queues_->of(scope_of(bubble));
  // After close() a closed bubble may be anybody's.
  if (sched::close(bubble, to, recall_)) announce(home->domain, 1);
}

bool PolicyEngine::tick_thread(TreeEntity& running, bool* slice_runs) {
  const uint64_t time = now();
  const uint64_t period = redistribution_ns_.load(kRelaxed);
  if (uint64_t next = next_redistribution_.load(kRelaxed); period != 0 && time >= next) {
    // Who changes the word does it; the first tick of all only begins the first period.
    if (next_redistribution_.compare_exchange_strong(next, time + period, kRelaxed) && next != 0)
      redistribute(0);
  }
  const uint32_t phase = phase_.load(kRelaxed);
  const Domain& phase_domain = machine().domain_array[phase_domain_.load(kRelaxed)];
  NestedBubble* outermost = nullptr;
  RunQueue* to = nullptr;
  for (NestedBubble* bubble = running.bubble; bubble != nullptr; bubble = bubble->bubble) {
    bool in_old_phase = false;
    {
      base::SpinGuard guard(bubble->lock);
      // A thread may have moved itself into a bubble that is closed, which then goes its own way. But
      // one that is open, or takes its members back, cannot be closed before the thread is back in it;
      // so it is out of the bubble around it, which is not closed either, and so on.
      if (bubble->state == BubbleState::kClosed || bubble->state == BubbleState::kInHand) break;
      if (bubble->evolution.phase.load(kRelaxed) != phase) {
        bubble->evolution.phase.store(phase, kRelaxed);  // once a phase
        in_old_phase = bubble->state == BubbleState::kBurst &&
                       below(machine().domain_array[bubble->burst_on->domain], phase_domain);
      }
    }
    if (in_old_phase) {
      outermost = bubble;
      to = &queues_->of(in_scope(*bubble, phase_domain) ? phase_domain.id : scope_of(*bubble));
    } else if (due(*bubble, time)) {
      if (has_rival(*bubble)) {
        outermost = bubble;
        to = nullptr;
      } else {
        count(Count::kRenewed);
        bubble->evolution.burst_at.store(time, kRelaxed);
      }
    } else if (outermost == nullptr && tick(*bubble, slice_runs)) {
      return true;
    }
    if (slice_runs != nullptr && bubble->evolution.slice_ns.load(kRelaxed) != 0) *slice_runs = true;
  }
  if (outermost == nullptr) return look_at_memory(running, time);
  if (to == nullptr) count(Count::kSlices);
  close(*outermost, to);
  return true;
}

uint32_t PolicyEngine::held_on(const NestedBubble& bubble) const {
  const uint8_t level = bubble.affinity.load(kRelaxed);
  const uint32_t anchor = bubble.evolution.anchor.load(kRelaxed);
  if (level == 0 || anchor == sched::kUnknown32) return kNone;
  const Domain& burst = machine().domain_array[anchor];
  const Domain& around =
      machine().domain_array[machine().level_array[level - 1].of_pu[burst.first_pu]];
  // Where it burst above that level it stays there.
  return below(burst, around) ? around.id : anchor;
}

uint32_t PolicyEngine::scope_of(const NestedBubble& bubble) const {
  const Domain* all = machine().domain_array;
  uint32_t held = kNone;
  const NestedBubble* outermost = &bubble;
  for (const NestedBubble* at = &bubble; at != nullptr; outermost = at, at = at->bubble) {
    const uint32_t domain = held_on(*at);
    if (domain != kNone && (held == kNone || all[domain].depth > all[held].depth)) held = domain;
  }
  const uint32_t woken = outermost->evolution.scope.load(kRelaxed);
  return held != kNone && below(all[held], all[woken]) ? held : woken;
}

bool PolicyEngine::may_be_taken_by(const TreeEntity& entity, uint32_t pu) const {
  const NestedBubble* at = entity.kind == sched::EntityKind::kBubble
                               ? static_cast<const NestedBubble*>(&entity)
                               : entity.bubble;
  for (; at != nullptr; at = at->bubble)
    if (const uint32_t domain = held_on(*at);
        domain != kNone && !machine().domain_array[domain].contains_pu(pu))
      return false;
  return true;
}

bool PolicyEngine::in_scope(const NestedBubble& bubble, const Domain& d) const {
  return below(d, machine().domain_array[scope_of(bubble)]);
}

void PolicyEngine::set_redistribution_period(uint64_t ns) {
  redistribution_ns_.store(ns, kRelaxed);
  next_redistribution_.store(0, kRelaxed);
}

uint32_t PolicyEngine::redistribute(uint32_t domain) {
  const Domain& scope = machine().domain_array[domain];
  // Before anything is closed, so that what bursts again meanwhile is of the new phase, and let alone.
  phase_domain_.store(domain, kRelaxed);
  const uint32_t phase = phase_.fetch_add(1, kRelaxed) + 1;
  count(Count::kPhases);
  uint32_t closed = 0;
  for (uint32_t d = domain; d < machine().n_domains; ++d)
    if (below(machine().domain_array[d], scope))
      while (redistribute_queue(queues_->of(d), scope, phase, &closed)) {
      }
  return closed;
}

/// Takes one bubble off the queue, or out of what is around an entity on it. False: there is none (any
/// more).
bool PolicyEngine::redistribute_queue(RunQueue& queue, const Domain& scope, uint32_t phase,
                                      uint32_t* closed) {
  queue.lock.lock();
  for (sched::Entity* e = queue.first; e != nullptr; e = e->next) {
    auto* entity = static_cast<TreeEntity*>(e);
    // The entity is out and cannot come in without this queue's lock: the bubbles around it stay.
    NestedBubble* open = nullptr;
    NestedBubble* itself = sched::as_bubble(entity);
    for (NestedBubble* b = itself != nullptr ? itself : entity->bubble; b != nullptr;
         b = b->bubble) {
      base::SpinGuard guard(b->lock);
      if (b->state == BubbleState::kBurst && b->evolution.phase.load(kRelaxed) != phase &&
          below(machine().domain_array[b->burst_on->domain], scope))
        open = b;
    }
    if (open != nullptr) {
      bool mine;
      {
        base::SpinGuard guard(open->lock);
        mine = sched::begin_closing_locked(*open);
      }
      if (!mine) continue;  // somebody was faster
      open->evolution.phase.store(phase, kRelaxed);
      queue.lock.unlock();
      const uint32_t to = in_scope(*open, scope) ? scope.id : scope_of(*open);
      if (sched::close_begun(*open, &queues_->of(to), recall_)) announce(to, 1);
      ++*closed;
      return true;
    }
    // A closed bubble that waits deeper than it must.
    if (itself == nullptr || itself->bubble != nullptr ||
        itself->evolution.phase.load(kRelaxed) == phase)
      continue;
    itself->evolution.phase.store(phase, kRelaxed);
    const uint32_t to = in_scope(*itself, scope) ? scope.id : scope_of(*itself);
    if (to == queue.domain) continue;
    itself->serving = itself->serves_closed = false;
    queue.remove_locked(itself);
    queue.lock.unlock();
    itself->home.store(&queues_->of(to), kRelaxed);
    if (RunQueue* at = sched::requeue(*itself, queues_->of(to))) announce(at->domain, 1);
    ++*closed;
    return true;
  }
  queue.lock.unlock();
  return false;
}

}  // namespace bosk::policies
