// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Carries out what policies answer.
#include "policies/engine.h"

#include <new>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/mapped_array.h"
#include "base/message.h"
#include "policies/decided.h"
#include "policies/gang/gang.h"
#include "policies/relations.h"
#include "sched/bubble_tree_locked.h"

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
    const PolicyStart start{
        &machine,      p.level,    i + 1 < plan.count ? plan.policy[i + 1].level : nullptr,
        p.level_given, p.argument, p.ops,
        this};
    void* state = nullptr;
    if (p.ops->start != nullptr && !p.ops->start(start, &state, error)) {
      stop();
      return false;
    }
    active_[n_active_++] = {p.ops, p.level, state};
    if (p.ops->gain != nullptr) memory_matters_.store(true, std::memory_order_relaxed);
  }
  const topology::Level* whole = machine.level(topology::Kind::kMachine);
  if (!make_rooms() ||
      !kGangPolicy.start({&machine, whole, nullptr, false, ""}, &gangs_.state, error)) {
    stop();
    return error->set("no memory for the policies' queues");
  }
  gangs_ = {&kGangPolicy, whole, gangs_.state};
  memory_moves_.store(base::memory_moves(), std::memory_order_relaxed);
  set_redistribution_period(uint64_t{base::settings().redistribute_us} * 1000);
  return true;
}

void PolicyEngine::stop() {
  while (n_active_ != 0) {
    const Active& active = active_[--n_active_];
    if (active.ops->stop != nullptr) active.ops->stop(active.state);
  }
  stop_chosen();
  if (gangs_.ops != nullptr) gangs_.ops->stop(gangs_.state);
  gangs_ = {};
  free_rooms();
  if (queues_ != nullptr) holders_.release(queues_->of(0));
  scratch_.release();
  present_.release();
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
  if (NestedBubble* bubble = sched::as_bubble(&entity)) {
    bubble->home.store(&queue, std::memory_order_relaxed);
    bubble->evolution.scope.store(domain, std::memory_order_relaxed);
    bubble->evolution.anchor.store(sched::kUnknown32, std::memory_order_relaxed);
    bubble->evolution.pulls.store(0, std::memory_order_relaxed);
    bubble->evolution.settled_until.store(0, std::memory_order_relaxed);
    bubble->evolution.memory_until.store(0, std::memory_order_relaxed);
    bubble->evolution.memory_moves.store(0, std::memory_order_relaxed);
  }
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

bool PolicyEngine::idle(uint32_t pu) {
  for (uint32_t i = n_active_; i-- > 0;)
    if (active_[i].ops->idle != nullptr && active_[i].ops->idle(active_[i].state, pu)) return true;
  if (idle_chosen(pu) || gangs_.ops->idle(gangs_.state, pu) || reconsider(pu)) return true;
  const bool taken = reconsider_afar(pu) || steal(pu) || pull(pu);
  note_idle();  // also of what was taken: it may be far from its memory now
  return taken;
}

void PolicyEngine::handle(NestedBubble& bubble, RunQueue& queue, uint32_t pu) {
  uint32_t domain = queue.domain;
  FoundBubble found;
  bool lends;
  {
    base::SpinGuard guard(bubble.lock);
    if (!bubble.take_in_hand()) return;
    bubble.serving = false;
    lends = sched::has_lent_locked(bubble);
    if (!lends) found = describe(bubble, domain, pu);
  }
  if (lends) {
    // Who works in it does so here, and takes what is nested in it next: the rest is for the others around.
    note_burst(bubble, domain);
    announce(domain, sched::burst(bubble, queue, std::exchange(bubble.in_front, false)));
    return;
  }
  if (decide(bubble, found, &domain)) return;
  note_gang_waits(found);
  sched::put_down(bubble);
  sched::requeue(bubble, rooms_[domain]);
}

bool PolicyEngine::decide(NestedBubble& bubble, const FoundBubble& found, uint32_t* domain) {
  RunQueue& queue = queues_->of(*domain);
  const uint32_t pu = found.pu;
  const Active& active = in_charge(bubble, queue.domain);
  Verdict verdict;
  if (found.relation != sched::Relation::kNone && found.relation != sched::Relation::kGang)
    verdict.action = Verdict::Action::kDistribute;  // to its seat, whatever the policy
  else if (active.ops->found != nullptr)
    verdict = active.ops->found(active.state, found);
  switch (verdict.action) {
    case Verdict::Action::kDescend: {
      // Only downwards on the finder's way: anything else could go round for ever.
      if (verdict.domain >= machine().n_domains) break;
      const Domain& to = machine().domain_array[verdict.domain];
      if (to.depth <= machine().domain_array[queue.domain].depth || !to.contains_pu(pu)) break;
      sched::put_down(bubble);
      if (RunQueue* at = sched::requeue(bubble, queues_->of(to.id))) announce(at->domain, 1);
      return true;
    }
    case Verdict::Action::kTakeGhost: {
      if (found.ghosts == 0) break;
      if (RunQueue* at = sched::serve_ghosts_from(bubble, queue))
        announce(at->domain, found.ghosts);
      return true;
    }
    case Verdict::Action::kDistribute: {
      const Outcome outcome = distribute(bubble, domain, active, pu);
      if (outcome == Outcome::kBurst) break;
      return outcome == Outcome::kDone;
    }
    case Verdict::Action::kWait:
      return false;
    case Verdict::Action::kKeep:
      if (holders_.of(verdict.domain) == nullptr) break;
      // Loads are in the program's unit there, 1 for what nobody told.
      keep(bubble, verdict.domain, sched::summarize(bubble).load * kLoadUnit);
      return true;
    case Verdict::Action::kBurst:
      break;
  }
  uint32_t at = queue.domain;
  // Only downwards on the finder's way, as above.
  if (verdict.action == Verdict::Action::kBurst && verdict.domain < machine().n_domains) {
    const Domain& to = machine().domain_array[verdict.domain];
    if (to.depth > machine().domain_array[at].depth && to.contains_pu(pu)) {
      at = to.id;
      bubble.figures.last_domain.store(at, std::memory_order_relaxed);
    }
  }
  note_burst(bubble, at);
  const bool front = std::exchange(bubble.in_front, false) || verdict.front;
  announce(at, sched::burst(bubble, queues_->of(at), front) + found.ghosts);
  return true;
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
      view.width = view.ghosts;
      view.content = view.ghosts * kLoadUnit;
      view.relation = static_cast<NestedBubble&>(entity).relation;
    } else {
      view.pieces = view.width = 1;
      view.demand = entity.demand;
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
    EntityView& outer = s.entities[e.parent];
    outer.content += e.load;
    outer.pieces += e.pieces;
    if (outer.relation != sched::Relation::kSequence)
      outer.width += e.width;
    else if (outer.width < e.width)
      outer.width = e.width;
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
    const bool held = is_holder(p.domain);
    if (p.entity >= s.entities.size() ||
        (held ? holders_.of(p.domain) == nullptr : p.domain >= machine().n_domains)) {
      wrong = "an entity, domain or holder that does not exist";
      break;
    }
    if (held && p.ghosts != 0) wrong = "ghosts in a holder";
    if (!held) {
      const Domain& d = machine().domain_array[p.domain];
      if (d.depth < scope.depth || !scope.contains_pu(d.first_pu)) wrong = "a domain out of reach";
    }
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
    if (s.entities[i].relation == sched::Relation::kSequence && s.fate[i] == kOpened)
      wrong = "a sequence taken apart";
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
    if (is_holder(to)) {
      keep(root, to, s.entities[0].load);
      return true;
    }
    book(root, s.entities[0].load, to);
    sched::put_down(root);
    if (RunQueue* at = sched::requeue(root, queues_->of(to))) announce(at->domain, 1);
    return true;
  }

  for (uint32_t i = 0; i < s.entities.size(); ++i) {
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
    TreeEntity& entity = *s.who[p.entity];
    if (is_holder(p.domain)) {
      widen(s.entities[p.entity].parent, queue.domain);
      unbook(entity);
      entity.booked_load = s.entities[p.entity].load;  // for when it is let out
      sched::release_to(entity, *holders_.of(p.domain));
      continue;
    }
    widen(s.entities[p.entity].parent, p.domain);
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
    bubble.figures.last_domain.store(area, std::memory_order_relaxed);
    if (i != 0) bubble.home.store(&queue, std::memory_order_relaxed);
    note_burst(bubble, area);
    const uint32_t ghosts = s.entities[i].ghosts;
    announce(area, sched::burst(bubble, queues_->of(area)) + ghosts);
  }
  return true;
}

/// The policy's answer for a bubble on `domain`, or what its relation says. False: there is none.
bool PolicyEngine::answer_for(const Active& active, const WorkScratch& s, uint32_t domain,
                              uint32_t pu, bool rose, PlacementList* answer) const {
  const EntityView& root = s.entities[0];
  const Domain& d = machine().domain_array[domain];
  const WorkView work{s.entities.data(), s.entities.size(), 1};
  if (root.relation != sched::Relation::kGang && relations::keeps_whole(machine(), root)) {
    if (rose || relations::sits(machine(), root, d))
      return root.relation != sched::Relation::kSequence &&
             relations::lay_out(machine(), work, domain, answer);
    if (active.ops->submit == nullptr)
      return answer->add({0, 0, 0, relations::seat_on_way(machine(), root, d, pu).id});
  }
  return active.ops->submit != nullptr &&
         active.ops->submit(active.state, {work, domain, booked_, pu}, answer);
}

/// Asks where the contents of a bubble in hand go, that was found on `*domain`: there and below, or, if
/// that is too small for what its relation wants, from its seat above. Unless it is done, the bubble is
/// still in hand and what is in it is not.
PolicyEngine::Outcome PolicyEngine::distribute(NestedBubble& bubble, uint32_t* domain,
                                               const Active& active, uint32_t pu) {
  WorkScratch* s = scratch_.take();
  if (s == nullptr) return Outcome::kBurst;
  Outcome outcome = Outcome::kBurst;
  if (snapshot(bubble, *s)) {
    const uint32_t found_on = *domain;
    *domain = relations::seat_from(machine(), s->entities[0], found_on, pu);
    s->answer.clear();
    // What was booked for them at the last distribution would be in their own way.
    for (TreeEntity* entity : std::span(s->who.data(), s->who.size())) unbook(*entity);
    const bool answered = s->fate.resize(s->entities.size()) &&
                          s->area.resize(s->entities.size()) &&
                          (answer_as_decided(machine(), *s, *domain) ||
                           answer_for(active, *s, *domain, pu, *domain != found_on, &s->answer));
    if (answered && !s->answer.waits() && accept(*s, *domain, active.ops->name)) {
      if (carry_out_and_tell(bubble, queues_->of(*domain), *s, active)) outcome = Outcome::kDone;
    } else {
      if (answered && s->answer.waits()) outcome = Outcome::kWait;
      for (uint32_t i = 1; i < s->entities.size(); ++i)
        if (is_bubble(s->entities[i])) sched::put_down(bubble_of(*s, i));
    }
  }
  scratch_.give(s);
  return outcome;
}

}  // namespace bosk::policies
