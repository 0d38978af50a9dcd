// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides about the memory of bubbles.
#include "threads/memory_mover.h"

#include <bosk/error.h>

#include "base/sleeping_lock.h"
#include "memory/manager.h"
#include "memory/node_stats.h"
#include "omp/follow_memory.h"
#include "omp/team_users.h"
#include "policies/decided.h"
#include "policies/memory/decision_log.h"
#include "policies/memory/users.h"
#include "threads/api.h"
#include "threads/memory_costs.h"

namespace bosk::threads {
namespace {

using base::MemoryMoves;
using policies::action_bit;
using policies::MemoryAction;
using policies::MemoryTrigger;

/// The caller inside of the scheduler: a thread with preemption off, or a kernel thread that has none, and keeps the
/// home's workers there while it makes threads ready.
class Visit {
 public:
  Visit(sched::Thread* me, Home* h) : me_(me), pool_(h->pool) {
    if (me_ != nullptr)
      sched::enter(me_);
    else
      sched::enter_pool(pool_);
  }
  ~Visit() {
    if (me_ != nullptr)
      sched::leave(me_);
    else
      sched::leave_pool(pool_);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  sched::Thread* me_;
  sched::Pool* pool_;
};

constexpr uint32_t kThreadActions =
    action_bit(MemoryAction::kThreads) | action_bit(MemoryAction::kMixed);

/// Of two who decide at once, one would bring threads to memory that the other is taking away. Taken with preemption on, and
/// held while pages move.
constinit base::SleepingLock deciding;

class Deciding {
 public:
  Deciding(sched::Thread* me, Home* h, MemoryTrigger trigger)
      : me_(me), h_(h), trigger_(trigger), moves_(h->engine.memory_moves()) {}
  ~Deciding() {
    users_.release();
    nodes_.release();
  }
  Deciding(const Deciding&) = delete;
  Deciding& operator=(const Deciding&) = delete;

  int run(bosk_bubble_t handle) {
    if (const int error = find_users(handle)) return error;
    if (comes_late_) return 1;
    memory::AreaTable* areas = memory::areas();
    if (outermost_ == nullptr || !users_.any() || areas == nullptr) return 0;
    const memory::CostTable* costs = memory_costs();
    if (costs == nullptr || costs->n_nodes != areas->nodes().count()) return 0;
    if (!users_.ask(*areas, true) || !find_nodes(*areas)) return 0;
    policies::MemoryQuestion question{};
    question.areas = areas;
    question.costs = costs;
    question.nodes = nodes_.data();
    users_.put_into(&question);
    if (question.n_uses == 0) return 0;
    return threads_move(question) || data_move(question) ? 1 : 0;
  }

 private:
  /// The outermost bubble that is open, and all that is in it.
  int find_users(bosk_bubble_t handle) {
    const Visit visit(me_, h_);
    // What is around a bubble stays around it.
    base::SpinGuard nesting(h_->nesting);
    HeldBubble bubble(handle);
    if (!bubble) return BOSK_ESTALE;
    sched::NestedBubble* open = nullptr;
    for (sched::NestedBubble* at = bubble.get(); at != nullptr; at = at->bubble) {
      base::SpinGuard guard(at->lock);
      if (at->state != sched::BubbleState::kBurst) break;
      open = at;
    }
    // Who looks at all bubbles comes to the outer one, too.
    const bool named = trigger_ == MemoryTrigger::kPlaced || trigger_ == MemoryTrigger::kHint;
    if (open != bubble.get() && !named) return 0;
    if (open == nullptr && trigger_ == MemoryTrigger::kHint) {
      // It may be on its way to where it was decided before this. Looked at when it has been placed (kPlaced).
      sched::NestedBubble* outermost = bubble.get();
      while (outermost->bubble != nullptr) outermost = outermost->bubble;
      policies::set_note(*outermost, policies::kLateHint);
      comes_late_ = policies::has_note(*outermost, policies::kDecided);
      return 0;
    }
    if (open != nullptr && trigger_ == MemoryTrigger::kPlaced &&
        policies::take_note(*open, policies::kLateHint))
      trigger_ = MemoryTrigger::kHint;
    if (open == nullptr || !h_->engine.may_redecide(*open, trigger_) ||
        !users_.list(*open, *h_->machine))
      return 0;
    outermost_ = handle_of(static_cast<BubbleRecord*>(open));
    return 0;
  }

  bool find_nodes(const memory::AreaTable& areas) {
    const topology::Machine& machine = *h_->machine;
    if (!nodes_.resize(machine.n_nodes)) return false;
    for (memory::NodeIndex node = 0; node < machine.n_nodes; ++node)
      nodes_[node] = {
          areas.nodes().usable(node) ? memory::memory_of_node(areas.nodes(), node).free : 0, 0, 0};
    uint32_t last = topology::kNone;
    for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
      const uint32_t node = machine.node_of_pu(pu);
      ++nodes_[node].pus;
      if (node == last) continue;
      last = node;
      // What is booked there and is not in this bubble.
      const topology::Level& level = *machine.level(topology::Kind::kNode);
      const uint64_t booked = h_->engine.booked(level.of_pu[pu]) / policies::kLoadUnit;
      const uint32_t own = users_.threads_on(node);
      nodes_[node].other_threads += booked > own ? static_cast<uint32_t>(booked - own) : 0;
    }
    return true;
  }

  /// The bubble is closed, so that its threads are placed by their memory.
  bool threads_move(policies::MemoryQuestion question) {
    if (trigger_ == MemoryTrigger::kPlaced || !h_->engine.moves_threads()) return false;
    policies::DataPlan plan;
    bool wanted = true;  // unless costs say otherwise
    if (moves_ == MemoryMoves::kAuto) {
      question.allowed = policies::kAnyAction;
      wanted = policies::plan_data(question, &plan) &&
               (plan.unknown || (action_bit(plan.action) & kThreadActions) != 0);
    } else {
      plan.action = MemoryAction::kMixed;
    }
    // What comes along is marked, or on its way, before they are there: later they would be at work meanwhile. If they wait
    // for what the program says here, even before they go; else once they are called back. It is decided anew when they are
    // placed, as always.
    policies::DataMoved brought;
    const bool comes_along = wanted && plan.action == MemoryAction::kMixed && !plan.unknown;
    const bool first = comes_along && trigger_ == MemoryTrigger::kHint;
    if (first) bring(question, plan, &brought);
    const bool moved = wanted && close();
    if (moved && comes_along && !first) bring(question, plan, &brought);
    if (moved || brought.areas + brought.marked != 0) note(plan, brought);
    plan.release();
    return moved;
  }

  bool close() {
    const Visit visit(me_, h_);
    base::SpinGuard nesting(h_->nesting);
    HeldBubble bubble(outermost_);
    return bubble && h_->engine.redecide_threads(*bubble, trigger_);
  }

  static void bring(const policies::MemoryQuestion& question, const policies::DataPlan& plan,
                    policies::DataMoved* moved) {
    for (uint32_t i = 0; i < plan.moves.size(); ++i)
      if (plan.moves[i].next_touch) omp::expect_marks();
    policies::move_data(*question.areas, plan, moved);
  }

  bool data_move(policies::MemoryQuestion question) {
    question.allowed = policies::data_actions(moves_);
    if (question.allowed == 0) return false;
    policies::DataPlan plan;
    policies::DataMoved moved;
    if (policies::plan_data(question, &plan)) {
      bring(question, plan, &moved);
      note(plan, moved);
    }
    plan.release();
    return moved.areas + moved.marked != 0;
  }

  void note(const policies::DataPlan& plan, const policies::DataMoved& moved) const {
    policies::MemoryEvent event;
    event.action = plan.action;
    event.forced = moves_ != MemoryMoves::kAuto;
    event.unknown = plan.unknown;
    event.rounds = plan.rounds;
    for (uint32_t i = 0; i < policies::kMemoryActions; ++i) event.costs[i] = plan.costs[i];
    event.pages = moved.pages;
    event.areas = moved.areas;
    event.marked = moved.marked;
    event.stayed = moved.stayed;
    policies::note_memory_event(event);
  }

  sched::Thread* me_;
  Home* h_;
  MemoryTrigger trigger_;
  const MemoryMoves moves_;
  bool comes_late_ = false;
  bosk_bubble_t outermost_ = nullptr;
  policies::MemoryUsers users_;
  base::MappedArray<policies::NodeState> nodes_;
};

}  // namespace

int decide_about_memory(sched::Thread* me, bosk_bubble_t bubble, MemoryTrigger trigger) {
  Home* h = home();
  if (h == nullptr) return BOSK_ESTALE;
  deciding.lock();
  const int done = Deciding(me, h, trigger).run(bubble);
  deciding.unlock();
  return done;
}

void decide_about_team(memory::AreaTable& areas, const omp::TeamUsers& users) {
  deciding.lock();
  omp::decide_for_users(areas, users);
  deciding.unlock();
}

void forget_deciding_after_fork() { new (&deciding) base::SleepingLock; }

}  // namespace bosk::threads
