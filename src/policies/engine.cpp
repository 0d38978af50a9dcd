// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Carries out what policies answer.
#include "policies/engine.h"

#include <new>

#include "base/assert.h"
#include "base/mapped_array.h"
#include "base/message.h"

namespace bosk::policies {

using sched::NestedBubble;
using sched::RunQueue;
using sched::TreeEntity;
using topology::Domain;

namespace {

/// What becomes of an entity of the work; see carry_out().
enum Fate : uint8_t {
  kOpened,   ///< a bubble without a placement: it bursts
  kPlaced,   ///< goes to a domain, whole
  kCarried,  ///< in a bubble that stays whole
};

bool is_bubble(const EntityView& e) { return e.kind == sched::EntityKind::kBubble; }

NestedBubble& bubble_of(const WorkScratch& s, uint32_t i) {
  return *static_cast<NestedBubble*>(s.who[i]);
}

}  // namespace

void WorkScratch::release() {
  entities.release();
  who.release();
  area.release();
  fate.release();
  answer.release();
}

bool PolicyEngine::start(sched::DomainQueues& queues, const PolicyPlan& plan,
                         const ReleasedHook& released, topology::Error* error) {
  const topology::Machine& machine = queues.machine();
  void* memory = base::map_pages(size_t{machine.n_domains} * sizeof booked_[0]);
  if (memory == nullptr) return error->set("no memory for the policies' books");
  booked_ = new (memory) std::atomic<uint64_t>[machine.n_domains] {};
  queues_ = &queues;
  released_ = released;
  for (uint32_t i = 0; i < plan.count; ++i) {
    const PlannedPolicy& p = plan.policy[i];
    const PolicyStart start{&machine, p.level,
                            i + 1 < plan.count ? plan.policy[i + 1].level : nullptr, p.level_given,
                            p.argument};
    void* state = nullptr;
    if (p.ops->start != nullptr && !p.ops->start(start, &state, error)) {
      stop();
      return false;
    }
    active_[n_active_++] = {p.ops, p.level, state};
  }
  return true;
}

void PolicyEngine::stop() {
  while (n_active_ != 0) {
    const Active& active = active_[--n_active_];
    if (active.ops->stop != nullptr) active.ops->stop(active.state);
  }
  scratch_.release();
  if (booked_ != nullptr)
    base::unmap_pages(booked_, size_t{machine().n_domains} * sizeof booked_[0]);
  booked_ = nullptr;
}

const PolicyEngine::Active& PolicyEngine::in_charge(uint32_t domain) const {
  const Domain& d = machine().domain_array[domain];
  uint32_t i = n_active_ - 1;
  while (i > 0 && !at_or_below(machine(), *active_[i].level, d)) --i;
  return active_[i];
}

void PolicyEngine::wake(TreeEntity& entity, uint32_t domain) {
  RunQueue& queue = queues_->of(domain);
  if (entity.kind == sched::EntityKind::kBubble) static_cast<NestedBubble&>(entity).home = &queue;
  if (RunQueue* at = sched::requeue(entity, queue)) announce(at->domain, 1);
}

void PolicyEngine::place_team(const TeamShape& shape, TeamPlacement* answer) const {
  const Active& active = in_charge(shape.opener_domain);
  if (active.ops->submit_team != nullptr)
    active.ops->submit_team(active.state, shape, answer);
  else
    answer->set_together(machine(), shape.opener_domain, shape.members);
}

void PolicyEngine::set_load(TreeEntity& entity, uint32_t load) {
  const uint32_t old = entity.figures.load.exchange(load, std::memory_order_relaxed);
  for (uint32_t i = 0; i < n_active_; ++i)
    if (active_[i].ops->hint != nullptr)
      active_[i].ops->hint(active_[i].state, &entity, load_of(old), load_of(load));
}

void PolicyEngine::done(TreeEntity& entity) {
  if (entity.booked_domain == sched::kUnknown32) return;
  const Active& active = in_charge(entity.booked_domain);
  if (active.ops->done != nullptr)
    active.ops->done(active.state, &entity, entity.booked_domain, entity.booked_load);
  unbook(entity);
}

bool PolicyEngine::idle(uint32_t pu) {
  for (uint32_t i = n_active_; i-- > 0;)
    if (active_[i].ops->idle != nullptr && active_[i].ops->idle(active_[i].state, pu)) return true;
  return false;
}

bool PolicyEngine::tick(NestedBubble& bubble) {
  FoundBubble seen;
  {
    base::SpinGuard guard(bubble.lock);
    if (bubble.state != sched::BubbleState::kBurst) return false;
    const uint32_t domain = bubble.burst_on->domain;
    seen = {domain, machine().domain_array[domain].first_pu, bubble.member_count,
            bubble.ghosts_left(), bubble.priority};
  }
  const Active& active = in_charge(seen.domain);
  if (active.ops->tick == nullptr ||
      active.ops->tick(active.state, seen) != TickAnswer::kRegenerate)
    return false;
  sched::close(bubble);
  return true;
}

void PolicyEngine::book(TreeEntity& entity, uint64_t load, uint32_t domain) {
  unbook(entity);
  entity.booked_load = load;
  entity.booked_domain = domain;
  for (const Domain* d = &machine().domain_array[domain]; d != nullptr; d = d->parent)
    booked_[d->id].fetch_add(load, std::memory_order_relaxed);
}

void PolicyEngine::unbook(TreeEntity& entity) {
  if (entity.booked_domain == sched::kUnknown32) return;
  for (const Domain* d = &machine().domain_array[entity.booked_domain]; d != nullptr; d = d->parent)
    booked_[d->id].fetch_sub(entity.booked_load, std::memory_order_relaxed);
  entity.booked_load = 0;
  entity.booked_domain = sched::kUnknown32;
}

void PolicyEngine::handle(NestedBubble& bubble, RunQueue& queue, uint32_t pu) {
  if (!sched::take_in_hand(bubble)) return;
  FoundBubble found{queue.domain, pu, 0, bubble.ghosts_left(), bubble.priority};
  {
    base::SpinGuard guard(bubble.lock);
    found.members = bubble.member_count;
  }
  const Active& active = in_charge(queue.domain);
  Verdict verdict;
  if (active.ops->found != nullptr) verdict = active.ops->found(active.state, found);
  switch (verdict.action) {
    case Verdict::Action::kDescend: {
      // Only downwards on the finder's way: anything else could go round for ever.
      if (verdict.domain >= machine().n_domains) break;
      const Domain& to = machine().domain_array[verdict.domain];
      if (to.depth <= machine().domain_array[queue.domain].depth || !to.contains_pu(pu)) break;
      sched::put_down(bubble);
      if (RunQueue* at = sched::requeue(bubble, queues_->of(to.id))) announce(at->domain, 1);
      return;
    }
    case Verdict::Action::kTakeGhost: {
      if (found.ghosts == 0) break;
      if (RunQueue* at = sched::serve_ghosts_from(bubble, queue))
        announce(at->domain, found.ghosts);
      return;
    }
    case Verdict::Action::kDistribute:
      if (distribute(bubble, queue, active)) return;
      break;
    case Verdict::Action::kBurst:
      break;
  }
  announce(queue.domain, sched::burst(bubble, queue) + found.ghosts);
}

/// The bubble and everything in it as plain data; every bubble in it is in hand afterwards, so that
/// nothing can go away. False: out of memory; all are down again but the root.
bool PolicyEngine::snapshot(NestedBubble& root, WorkScratch& s) const {
  s.entities.clear();
  s.who.clear();
  const auto add = [&](TreeEntity& entity, uint32_t parent) {
    EntityView view{};
    view.token = &entity;
    view.parent = parent;
    view.first_child = kNone;
    view.priority = entity.priority;
    view.kind = entity.kind;
    view.last_domain = entity.figures.last_domain.load(std::memory_order_relaxed);
    view.footprint = entity.figures.footprint.load(std::memory_order_acquire);
    if (view.kind == sched::EntityKind::kBubble) {
      view.ghosts = view.pieces = static_cast<NestedBubble&>(entity).ghosts_left();
      view.content = view.ghosts * kLoadUnit;
      view.relation = static_cast<NestedBubble&>(entity).relation;
    } else {
      view.pieces = 1;
      view.load = load_of(entity.figures.load.load(std::memory_order_relaxed));
    }
    return s.entities.push(view) && s.who.push(&entity);
  };
  bool enough = add(root, kNone);
  for (uint32_t i = 0; enough && i < s.who.size(); ++i) {
    if (!is_bubble(s.entities[i])) continue;
    NestedBubble& bubble = bubble_of(s, i);
    if (i != 0) {
      const bool closed = sched::take_in_hand(bubble);
      BOSK_ASSERT(closed);  // what a bubble holds is closed
      static_cast<void>(closed);
    }
    base::SpinGuard guard(bubble.lock);
    for (TreeEntity* member = bubble.first_member; enough && member != nullptr;
         member = member->next_member) {
      if (member->whereabouts != sched::Whereabouts::kHeld) continue;
      if (s.entities[i].first_child == kNone) s.entities[i].first_child = s.who.size();
      enough = add(*member, i);
      if (enough) ++s.entities[i].n_children;
    }
    if (!enough) s.entities.resize(i + 1);  // those that are in hand
  }
  if (!enough) {
    for (uint32_t i = 1; i < s.entities.size(); ++i)
      if (is_bubble(s.entities[i])) sched::put_down(bubble_of(s, i));
    return false;
  }
  // Sums, from the innermost bubbles out: members come after their bubble.
  for (uint32_t i = s.entities.size(); i-- > 0;) {
    EntityView& e = s.entities[i];
    if (is_bubble(e)) {
      const uint32_t given = s.who[i]->figures.load.load(std::memory_order_relaxed);
      e.load = given != sched::kUnknown32 ? load_of(given) : e.content;
    }
    if (e.parent == kNone) continue;
    s.entities[e.parent].content += e.load;
    s.entities[e.parent].pieces += e.pieces;
  }
  return true;
}

/// Is every thread in exactly one placement, below `domain`? A policy may come from elsewhere.
bool PolicyEngine::accept(const WorkScratch& s, uint32_t domain, const char* policy) const {
  const Domain& scope = machine().domain_array[domain];
  const char* wrong = nullptr;
  WorkScratch& marks = const_cast<WorkScratch&>(s);
  for (uint32_t i = 0; i < s.fate.size(); ++i) marks.fate[i] = kOpened;
  for (uint32_t i = 0; i < s.answer.size() && wrong == nullptr; ++i) {
    const Placement& p = s.answer[i];
    if (p.entity >= s.entities.size() || p.domain >= machine().n_domains) {
      wrong = "an entity or domain that does not exist";
      break;
    }
    const Domain& d = machine().domain_array[p.domain];
    if (d.depth < scope.depth || !scope.contains_pu(d.first_pu)) wrong = "a domain out of reach";
    if (p.ghosts != 0) {
      if (uint64_t{p.first_ghost} + p.ghosts > s.entities[p.entity].ghosts)
        wrong = "too many ghosts";
      continue;
    }
    if (s.fate[p.entity] == kPlaced) wrong = "two places for one entity";
    marks.fate[p.entity] = kPlaced;
  }
  for (uint32_t i = 0; i < s.entities.size() && wrong == nullptr; ++i) {
    const uint32_t parent = s.entities[i].parent;
    const bool carried = parent != kNone && s.fate[parent] != kOpened;
    if (carried && s.fate[i] == kPlaced) wrong = "a place for what is in a placed bubble";
    if (carried) marks.fate[i] = kCarried;
    if (!is_bubble(s.entities[i]) && s.fate[i] == kOpened) wrong = "no place for a thread";
  }
  if (wrong == nullptr) return true;
  static base::SayOnce once;
  if (once.first())
    base::say("the policy %s answered nonsense (%s); its bubbles burst where they are", policy,
              wrong);
  return false;
}

/// Puts everything where the answer says. The order matters: what is on a queue may run, end and be
/// gone, unless the bubble around it is in hand.
bool PolicyEngine::carry_out(NestedBubble& root, RunQueue& queue, WorkScratch& s) {
  for (uint32_t i = 1; i < s.entities.size(); ++i)
    if (is_bubble(s.entities[i]) && s.fate[i] != kOpened) sched::put_down(bubble_of(s, i));

  if (s.fate[0] == kPlaced) {
    uint32_t to = queue.domain;
    for (uint32_t i = 0; i < s.answer.size(); ++i)
      if (s.answer[i].entity == 0 && s.answer[i].ghosts == 0) to = s.answer[i].domain;
    if (to == queue.domain) return false;  // it would only be found again
    book(root, s.entities[0].load, to);
    sched::put_down(root);
    if (RunQueue* at = sched::requeue(root, queues_->of(to))) announce(at->domain, 1);
    return true;
  }

  for (uint32_t i = 0; i < s.entities.size(); ++i) {
    s.area[i] = kNone;
    if (s.fate[i] != kOpened) continue;
    unbook(*s.who[i]);
    if (i != 0) sched::release_in_hand(bubble_of(s, i));
  }
  const auto widen = [&](uint32_t i, uint32_t domain) {
    const Domain* all = machine().domain_array;
    s.area[i] =
        s.area[i] == kNone ? domain : machine().common_ancestor(all[s.area[i]], all[domain]).id;
  };
  for (uint32_t i = 0; i < s.answer.size(); ++i) {
    const Placement& p = s.answer[i];
    if (p.ghosts != 0) {
      widen(p.entity, p.domain);
      continue;
    }
    widen(s.entities[p.entity].parent, p.domain);
    TreeEntity& entity = *s.who[p.entity];
    book(entity, s.entities[p.entity].load, p.domain);
    sched::release_to(entity, queues_->of(p.domain));
    announce(p.domain, 1);
  }
  // Inner bubbles first: the one around them, still in hand, keeps them from going away. An opened
  // bubble's ghosts are served from the smallest domain around all that was in it.
  for (uint32_t i = s.entities.size(); i-- > 0;) {
    if (s.fate[i] != kOpened) continue;
    const uint32_t area = s.area[i] != kNone ? s.area[i] : queue.domain;
    const uint32_t parent = s.entities[i].parent;
    if (parent != kNone && s.area[i] != kNone) widen(parent, area);
    NestedBubble& bubble = bubble_of(s, i);
    if (i != 0) bubble.home = &queue;
    const uint32_t ghosts = s.entities[i].ghosts;
    announce(area, sched::burst(bubble, queues_->of(area)) + ghosts);
  }
  return true;
}

/// Asks the policy where the contents of a bubble in hand go. False: nowhere; the bubble is still
/// in hand, what is in it is not.
bool PolicyEngine::distribute(NestedBubble& bubble, RunQueue& queue, const Active& active) {
  if (active.ops->submit == nullptr) return false;
  WorkScratch* s = scratch_.take();
  if (s == nullptr) return false;
  bool done = false;
  if (snapshot(bubble, *s)) {
    s->answer.clear();
    const Submission submission{{s->entities.data(), s->entities.size(), 1}, queue.domain, booked_};
    if (s->fate.resize(s->entities.size()) && s->area.resize(s->entities.size()) &&
        active.ops->submit(active.state, submission, &s->answer) &&
        accept(*s, queue.domain, active.ops->name)) {
      done = carry_out(bubble, queue, *s);
    } else {
      for (uint32_t i = 1; i < s->entities.size(); ++i)
        if (is_bubble(s->entities[i])) sched::put_down(bubble_of(*s, i));
    }
  }
  scratch_.give(s);
  return done;
}

}  // namespace bosk::policies
