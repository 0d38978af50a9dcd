// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When it is decided anew where threads go, because of their memory (2009 §3.1).
//
//     attached, freed, moved ─┐                            ┌─ no: nothing happens
//     a PU is idle ───────────┴─▶ next tick ─▶ looked at ──┴─ yes: closed, and submitted anew
//     the program says so ────────────────────────▲           (from the seat where it was woken)
//
// That is about threads. Where memory may move to threads as well (moves_data()) the engine only tells who looks at
// both, by costs, with preemption on (requests.h): at the same moments, and when a bubble with memory has been placed.
//
// What is looked at is a copy: bubbles are locked while it is made and not while the policy thinks. What has
// changed until the bubble is closed costs a distribution for nothing at worst.
#include <algorithm>

#include "base/rounds.h"
#include "policies/decided.h"
#include "policies/engine.h"

namespace bosk::policies {

using sched::BubbleState;
using sched::NestedBubble;
using sched::TreeEntity;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
/// Of what is attached, the part that must come nearer: moving threads costs their caches.
constexpr uint64_t kWorthPart = 8;
/// PUs that have nothing to do for long do not have everybody looked at all the time.
constexpr uint64_t kIdleEveryNs = 1'000'000;
/// Of the pause between two redistributions for memory's sake: 13 s.
constexpr uint32_t kMostDoublings = 16;
/// In memory_told_, so that who looks knows why.
constexpr uint32_t kTriggerBits = 3;

/// Where an entity of an open bubble is now; the bubble's lock is held, which guards last_queue.
uint32_t whereabouts_of(const TreeEntity& entity) {
  const uint32_t decided = entity.figures.wake_domain.load(kRelaxed);
  if (decided != kNone) return decided;
  const bool runs = entity.activity.load(kRelaxed) == sched::Activity::kRunning;
  return runs || entity.last_queue == nullptr ? entity.figures.last_domain.load(kRelaxed)
                                              : entity.last_queue->domain;
}

struct Listing {
  PresentScratch* s;
  bool enough;
};

void enter(void* context, TreeEntity& entity) {
  auto& listing = *static_cast<Listing*>(context);
  PresentScratch& s = *listing.s;
  if (!listing.enough) return;
  EntityView view{};
  view.token = &entity;
  view.parent = kNone;
  // Its bubble is the one before it, or around that.
  if (const uint32_t before = s.who.size(); before != 0) {
    view.parent = before - 1;
    while (s.who[view.parent] != static_cast<TreeEntity*>(entity.bubble))
      view.parent = s.found[view.parent].parent;
  }
  view.first_child = kNone;
  view.priority = entity.priority;
  view.kind = entity.kind;
  view.last_domain = whereabouts_of(entity);
  // acquire: the array was filled before it was attached.
  view.footprint = entity.figures.footprint.load(std::memory_order_acquire);
  const uint32_t load = entity.figures.load.load(kRelaxed);
  if (NestedBubble* bubble = sched::as_bubble(&entity)) {
    view.ghosts = view.pieces = view.width = bubble->ghosts_left();
    view.content = view.ghosts * kLoadUnit;
    view.relation = bubble->relation;
    view.load = load == sched::kUnknown32 ? 0 : load_of(load);
  } else {
    view.pieces = view.width = 1;
    view.demand = entity.demand;
    view.load = load_of(load);
  }
  listing.enough = s.found.push(view) && s.who.push(&entity);
}

/// Level by level, with sums, as WorkView says. False: out of memory.
bool order(PresentScratch& s) {
  const uint32_t n = s.found.size();
  if (!s.next.resize(n)) return false;
  // Chains of siblings; from the last one back, so that they are in order. `first_child` is the first of them.
  for (uint32_t i = n; i-- > 1;) {
    EntityView& outer = s.found[s.found[i].parent];
    s.next[i] = outer.first_child;
    outer.first_child = i;
  }
  s.entities.clear();
  if (!s.entities.push(s.found[0])) return false;
  s.next[0] = 0;
  for (uint32_t i = 0; i < s.entities.size(); ++i) {
    uint32_t member = s.entities[i].first_child;
    s.entities[i].first_child = member == kNone ? kNone : s.entities.size();
    for (uint32_t behind; member != kNone; member = behind) {
      behind = s.next[member];
      s.next[member] = s.entities.size();
      if (!s.entities.push(s.found[member])) return false;
      s.entities.back().parent = i;
      ++s.entities[i].n_children;
    }
  }
  for (uint32_t i = s.entities.size(); i-- > 0;) {
    EntityView& e = s.entities[i];
    if (e.kind == sched::EntityKind::kBubble && e.load == 0) e.load = e.content;
    if (i == 0) continue;
    EntityView& outer = s.entities[e.parent];
    outer.content += e.load;
    outer.pieces += e.pieces;
    outer.width = outer.relation == sched::Relation::kSequence ? std::max(outer.width, e.width)
                                                               : outer.width + e.width;
  }
  return true;
}

/// Tells threads where to go (policies/decided.h). What is booked for those that are on no queue goes there now: until they come
/// their PUs would seem to be taken, and idle ones come for those that have been placed there meanwhile.
struct Telling {
  const PresentScratch* s;
  void (*move_booking)(PolicyEngine& engine, TreeEntity& thread, uint32_t domain);
  PolicyEngine* engine;
  uint32_t at;  ///< in `who`
};

void tell(void* context, TreeEntity& entity) {
  auto& telling = *static_cast<Telling*>(context);
  const PresentScratch& s = *telling.s;
  // Those that have come or gone meanwhile are not the ones that were thought of.
  constexpr uint32_t kMostGone = 64;
  const uint32_t end = std::min(s.who.size(), telling.at + kMostGone);
  uint32_t at = telling.at;
  while (at < end && s.who[at] != &entity) ++at;
  if (at >= end) return;
  telling.at = at + 1;
  const EntityView& view = s.entities[s.next[at]];
  if (entity.kind != sched::EntityKind::kThread || view.last_domain == kNone) return;
  entity.figures.wake_domain.store(view.last_domain, kRelaxed);
  // The bubble's lock is held, without which nobody queues it: so it comes into nobody's hand meanwhile.
  if (entity.activity.load(kRelaxed) != sched::Activity::kReady &&
      entity.whereabouts == sched::Whereabouts::kOut)
    telling.move_booking(*telling.engine, entity, view.last_domain);
}

/// last_domain of the entities becomes where the answer has them; kNone: nowhere in particular.
void take_answer(PresentScratch& s) {
  for (uint32_t i = 0; i < s.entities.size(); ++i) s.entities[i].last_domain = kNone;
  for (uint32_t i = 0; i < s.answer.size(); ++i)
    if (s.answer[i].ghosts == 0) s.entities[s.answer[i].entity].last_domain = s.answer[i].domain;
  for (uint32_t i = 1; i < s.entities.size(); ++i)
    if (s.entities[i].last_domain == kNone)
      s.entities[i].last_domain = s.entities[s.entities[i].parent].last_domain;
}

uint64_t attached_to(const PresentScratch& s, uint32_t nodes) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < s.entities.size(); ++i)
    for (uint32_t node = 0; s.entities[i].footprint != nullptr && node < nodes; ++node)
      bytes += s.entities[i].footprint[node].load(kRelaxed);
  return bytes;
}

}  // namespace

void PresentScratch::release() {
  found.release();
  entities.release();
  who.release();
  next.release();
  answer.release();
}

void PolicyEngine::memory_changed(MemoryTrigger trigger) {
  if (!memory_matters_.load(kRelaxed)) return;
  uint32_t told = memory_told_.load(kRelaxed);
  const auto next = [&] {
    return (((told >> kTriggerBits) + 1) << kTriggerBits) | static_cast<uint32_t>(trigger);
  };
  while (!memory_told_.compare_exchange_weak(told, next(), kRelaxed)) {
  }
  if (moves_data()) memory_requests_->put_all(trigger);
}

void PolicyEngine::note_idle() {
  if (!memory_matters_.load(kRelaxed)) return;
  const uint64_t time = now();
  uint64_t before = idle_told_.load(kRelaxed);
  if (time - before < kIdleEveryNs && before != 0) return;
  if (idle_told_.compare_exchange_strong(before, time, kRelaxed))
    memory_changed(MemoryTrigger::kIdle);
}

/// At a tick of the thread, whose bubbles stay around it as long as they are open; see tick_thread().
bool PolicyEngine::look_at_memory(const TreeEntity& running, uint64_t time) {
  const uint32_t told = memory_told_.load(kRelaxed);
  if (told == 0) return false;
  NestedBubble* open = nullptr;
  for (NestedBubble* bubble = running.bubble; bubble != nullptr; bubble = bubble->bubble) {
    base::SpinGuard guard(bubble->lock);
    if (bubble->state != BubbleState::kBurst) break;
    open = bubble;
  }
  if (open == nullptr || open->evolution.memory_told.load(kRelaxed) == told ||
      time < open->evolution.settled_until.load(kRelaxed) ||
      time < open->evolution.memory_until.load(kRelaxed))
    return false;
  open->evolution.memory_told.store(told, kRelaxed);
  const auto trigger = static_cast<MemoryTrigger>(told & ((1u << kTriggerBits) - 1));
  const bool closed = redecide(*open, trigger);
  if (!closed && !moves_data()) return false;
  open->evolution.settled_until.store(time + damping_.settle_ns, kRelaxed);
  return closed;
}

bool PolicyEngine::list_present(NestedBubble& bubble, PresentScratch& s) const {
  s.found.clear();
  s.who.clear();
  Listing listing{&s, true};
  sched::visit(bubble, enter, &listing);
  return listing.enough && order(s);
}

/// Where an open bubble would be submitted anew, and to whom. False: nowhere, or its policy does not mind memory.
bool PolicyEngine::decided_on(NestedBubble& bubble, uint32_t* domain, const Active** active) const {
  if (!memory_matters_.load(kRelaxed)) return false;
  {
    base::SpinGuard guard(bubble.lock);
    if (bubble.state != BubbleState::kBurst) return false;  // it is decided about as it is
    const sched::RunQueue* home = bubble.home.load(kRelaxed);
    *domain = bubble.bubble == nullptr || home == nullptr ? bubble.evolution.scope.load(kRelaxed)
                                                          : home->domain;
  }
  if (*domain >= machine().n_domains) return false;  // it was in a holder
  *active = &in_charge(bubble, *domain);
  return (*active)->ops->gain != nullptr;
}

bool PolicyEngine::may_redecide(NestedBubble& bubble, MemoryTrigger trigger) {
  uint32_t domain;
  const Active* active;
  if (!decided_on(bubble, &domain, &active)) return false;
  // What was done last has yet to show. At a tick after that it is looked at again (look_at_memory()).
  const bool waits = trigger != MemoryTrigger::kHint && trigger != MemoryTrigger::kPlaced;
  if (waits && now() < bubble.evolution.memory_until.load(kRelaxed)) return false;
  memory_looked_[static_cast<uint32_t>(trigger)].fetch_add(1, kRelaxed);
  return true;
}

bool PolicyEngine::redecide(NestedBubble& bubble, MemoryTrigger trigger) {
  if (!moves_data()) return may_redecide(bubble, trigger) && redecide_threads(bubble, trigger);
  memory_requests_->put(bubble.number, trigger);
  return false;
}

/// Its threads have moved for their memory. Each time that they do again as soon as they may, the time until then doubles;
/// after as long in peace it begins anew.
void PolicyEngine::let_alone(NestedBubble& bubble) const {
  sched::Evolution& e = bubble.evolution;
  const uint64_t time = now();
  const uint32_t in_a_row = e.memory_moves.load(kRelaxed) & kMoves;
  const uint64_t pause = damping_.settle_ns << in_a_row;
  const bool in_peace = time >= e.memory_until.load(kRelaxed) + pause;
  const uint32_t next = in_peace ? 0 : std::min(in_a_row + 1, kMostDoublings);
  e.memory_moves.fetch_add(next - in_a_row, kRelaxed);  // the notes beside it stay
  e.memory_until.store(time + (damping_.settle_ns << next), kRelaxed);
}

bool PolicyEngine::redecide_threads(NestedBubble& bubble, MemoryTrigger trigger) {
  uint32_t to;
  const Active* active;
  if (!decided_on(bubble, &to, &active)) return false;
  const auto number = static_cast<uint32_t>(trigger);
  PresentScratch* s = present_.take();
  if (s == nullptr) return false;
  bool contradicts = false;
  if (list_present(bubble, *s)) {
    const Submission present{{s->entities.data(), s->entities.size(), 1},
                             to,
                             booked_,
                             machine().domain_array[to].first_pu};
    s->answer.clear();
    const uint64_t gain = active->ops->gain(active->state, present, &s->answer);
    contradicts = gain != 0 && gain >= attached_to(*s, machine().n_nodes) / kWorthPart;
    if (contradicts) {
      take_answer(*s);
      const auto move = [](PolicyEngine& engine, TreeEntity& thread, uint32_t domain) {
        engine.move_booking(thread, domain);
      };
      Telling telling{s, move, this, 0};
      sched::visit(bubble, tell, &telling);
    }
  }
  present_.give(s);
  if (!contradicts) return false;
  {
    base::SpinGuard guard(bubble.lock);
    if (!sched::begin_closing_locked(bubble)) return false;  // somebody was faster
  }
  let_alone(bubble);
  set_note(bubble, kDecided);
  memory_closed_[number].fetch_add(1, kRelaxed);
  if (sched::close_begun(bubble, &queues_->of(to), recall_)) announce(to, 1);
  return true;
}

uint32_t PolicyEngine::move_to_wake_domain(TreeEntity& thread) {
  const uint32_t domain = thread.figures.wake_domain.exchange(kNone, kRelaxed);
  if (domain >= machine().n_domains) return kNone;
  // Its bubble may be closed: when that opens it is to be found there.
  thread.figures.last_domain.store(domain, kRelaxed);
  move_booking(thread, domain);
  return domain;
}

/// One that nobody else wants the PU of would stay for ever, and whoever decides would take it to be on its way.
bool PolicyEngine::is_told_elsewhere(TreeEntity& running) const {
  uint32_t told = running.figures.wake_domain.load(kRelaxed);
  const uint32_t at = running.figures.last_domain.load(kRelaxed);
  if (BOSK_LIKELY(told == kNone) || told >= machine().n_domains || at >= machine().n_domains)
    return false;
  if (!machine().domain_array[told].contains_pu(machine().domain_array[at].first_pu)) return true;
  // Unless it is told something new at this moment.
  running.figures.wake_domain.compare_exchange_strong(told, kNone, kRelaxed);
  return false;
}

bool PolicyEngine::comes_last(NestedBubble& bubble, uint32_t threads) {
  return base::comes_last(&bubble.evolution.reached, threads);
}

bool PolicyEngine::redecide_when_all(NestedBubble& bubble, uint32_t threads) {
  return comes_last(bubble, threads) && redecide(bubble, MemoryTrigger::kHint);
}

/// If anybody in the work has memory, it could come to where he has been placed. A hint that came late is looked at now.
bool PolicyEngine::carry_out_and_tell(NestedBubble& bubble, sched::RunQueue& queue, WorkScratch& s,
                                      const Active& active) {
  uint64_t name = 0;
  // Afterwards the bubble may have gone.
  if (active.ops->gain != nullptr && moves_data()) {
    if (has_note(bubble, kLateHint)) name = bubble.number;
    for (uint32_t i = 0; name == 0 && i < s.entities.size(); ++i)
      if (s.entities[i].footprint != nullptr) name = bubble.number;
  }
  if (!carry_out(bubble, queue, s)) return false;
  if (name != 0) memory_requests_->put(name, MemoryTrigger::kPlaced);
  return true;
}

MemoryCounts PolicyEngine::memory_counts() const {
  MemoryCounts counts{};
  for (uint32_t i = 0; i < kMemoryTriggers; ++i) {
    counts.looked[i] = memory_looked_[i].load(kRelaxed);
    counts.closed[i] = memory_closed_[i].load(kRelaxed);
  }
  return counts;
}

}  // namespace bosk::policies
