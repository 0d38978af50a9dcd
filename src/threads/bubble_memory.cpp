// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "threads/bubble_memory.h"

#include <bosk/error.h>
#include <string.h>

#include "base/message.h"
#include "locality/book_upkeep.h"
#include "locality/decider.h"
#include "locality/service.h"
#include "memory/manager.h"
#include "omp/follow_memory.h"
#include "policies/decided.h"
#include "sched/homes.h"
#include "threads/api.h"
#include "threads/attached.h"
#include "threads/bubble_users.h"
#include "threads/worker_counters.h"

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

class Deciding {
 public:
  Deciding(sched::Thread* me, Home* h, MemoryTrigger trigger)
      : me_(me), h_(h), trigger_(trigger), moves_(h->engine.memory_moves()) {}
  ~Deciding() {
    present_.release();
    users_.release();
  }
  Deciding(const Deciding&) = delete;
  Deciding& operator=(const Deciding&) = delete;

  int run(bosk_bubble_t handle) {
    if (const int error = find_users(handle)) return error;
    if (comes_late_) return 1;
    memory::AreaTable* areas = memory::areas();
    if (outermost_ == nullptr || !present_.any() || areas == nullptr) return 0;
    if (!present_.ask(*areas, true, &users_)) return 0;
    locality::Decider decider(*areas, users_);
    if (!decider.prepare()) return 0;
    tell_of_others(&decider);
    return threads_move(decider) || data_moves(decider) ? 1 : 0;
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
        !present_.list(*open, *h_->machine))
      return 0;
    outermost_ = handle_of(static_cast<BubbleRecord*>(open));
    return 0;
  }

  /// What is booked on the nodes and is not in this bubble.
  void tell_of_others(locality::Decider* decider) const {
    const topology::Machine& machine = *h_->machine;
    const topology::Level& level = *machine.level(topology::Kind::kNode);
    base::MappedArray<uint32_t> others;
    if (!others.resize(machine.n_nodes)) return;
    uint32_t last = topology::kNone;
    for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
      const uint32_t node = machine.node_of_pu(pu);
      if (node == last) continue;
      last = node;
      const uint64_t booked = h_->engine.booked(level.of_pu[pu]) / policies::kLoadUnit;
      const uint32_t own = present_.threads_on(node);
      others[node] += booked > own ? static_cast<uint32_t>(booked - own) : 0;
    }
    for (uint32_t node = 0; node < machine.n_nodes; ++node)
      decider->set_other_threads(node, others[node]);
    others.release();
  }

  /// The bubble is closed, so that its threads are placed by their memory.
  bool threads_move(const locality::Decider& decider) {
    if (trigger_ == MemoryTrigger::kPlaced || !h_->engine.moves_threads()) return false;
    policies::DataPlan plan;
    bool wanted = true;  // unless costs say otherwise
    if (moves_ == MemoryMoves::kAuto) {
      wanted = decider.plan(policies::kAnyAction, &plan) &&
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
    if (first) decider.bring(plan, &brought);
    const bool moved = wanted && close();
    if (moved && comes_along && !first) decider.bring(plan, &brought);
    if (moved || brought.anything()) locality::note_decision(plan, brought, moves_);
    note_marks(brought);
    plan.release();
    return moved;
  }

  bool close() {
    const Visit visit(me_, h_);
    base::SpinGuard nesting(h_->nesting);
    HeldBubble bubble(outermost_);
    return bubble && h_->engine.redecide_threads(*bubble, trigger_);
  }

  bool data_moves(const locality::Decider& decider) const {
    policies::DataMoved moved;
    decider.bring_data(moves_, &moved);
    note_marks(moved);
    return moved.anything();
  }

  /// Regions look after marks from now on.
  static void note_marks(const policies::DataMoved& moved) {
    if (moved.marked != 0) omp::expect_marks();
  }

  sched::Thread* me_;
  Home* h_;
  MemoryTrigger trigger_;
  const MemoryMoves moves_;
  bool comes_late_ = false;
  bosk_bubble_t outermost_ = nullptr;
  BubbleUsers present_;
  locality::Users users_;
};

// ---- the adapter

/// Belongs to the service thread, and to forget() in a forked child.
struct Kept {
  BubbleUsers present;
  locality::Watched watched;
};
constinit Kept kept;

void decide(uint64_t name, MemoryTrigger trigger) {
  decide_about_memory(nullptr, reinterpret_cast<bosk_bubble_t>(name), trigger);
}

/// Nobody has handed over these handles. The look-up sees that the one before has ended; acquire: what it was made with.
template <typename Each>
void for_each_bubble(Each&& each) {
  bubble_table.for_each([&](uintptr_t handle) {
    const BubbleRecord* record = bubble_table.find(handle);
    if (record != nullptr && record->life.load(std::memory_order_acquire) != Life::kFree)
      each(handle);
  });
}

void decide_all(MemoryTrigger trigger) {
  for_each_bubble([trigger](uintptr_t handle) { decide(handle, trigger); });
}

bool is_watched() {
  const Home* h = home();
  return h != nullptr && h->engine.moves_data() &&
         // relaxed: a thread that begins now is looked at next time.
         (h->live.load(std::memory_order_relaxed) & ~Home::kLeft) != 0;
}

bool is_open(sched::NestedBubble& bubble) {
  base::SpinGuard guard(bubble.lock);
  return bubble.state == sched::BubbleState::kBurst;
}

void note_worker(void* workers, sched::TreeEntity& entity) {
  const uint32_t last = entity.figures.last_worker.load(std::memory_order_relaxed);
  if (last != sched::kUnknown32) static_cast<base::MappedArray<uint32_t>*>(workers)->push(last);
}

/// Who is in it, if it is open, nothing open is around it, and anything is attached.
bool list(Home* h, bosk_bubble_t handle) {
  kept.watched.clear();
  const Visit visit(nullptr, h);
  // What is around a bubble stays around it.
  base::SpinGuard nesting(h->nesting);
  HeldBubble bubble(handle);
  if (!bubble || !is_open(*bubble) || (bubble->bubble != nullptr && is_open(*bubble->bubble)) ||
      !kept.present.list(*bubble, *h->machine) || !kept.present.any())
    return false;
  sched::visit(*bubble, note_worker, &kept.watched.workers);
  return true;
}

void look(locality::Look& look) {
  Home* h = home();
  for_each_bubble([&](uintptr_t name) {
    const auto handle = reinterpret_cast<bosk_bubble_t>(name);
    if (!list(h, handle)) return;
    if (look.wants_users() && !kept.present.ask(look.areas(), false, &kept.watched.users))
      kept.watched.users.clear();
    if (look.is_far(name, kept.watched)) look.decide([&] { decide(name, MemoryTrigger::kRemote); });
  });
}

void end() {
  kept.present.release();
  kept.watched.release();
}

/// Its thread may have been in the middle of anything: what it had is left where it is.
void forget() { new (&kept) Kept; }

bool asks() {
  const Home* h = home();
  return h != nullptr && h->engine.moves_data();
}

constexpr locality::Adapter kBubbles = {
    decide, decide_all, is_watched,           &worker_counters,   look,
    end,    forget,     policies_mind_memory, memory_has_changed, asks};

constinit std::atomic<bool> refused{false};

}  // namespace

void ensure_bubbles_are_served(sched::Thread* me, Home* h) {
  // Threads go to their memory, or that to them, by the PUs of the workers.
  if (h->engine.minds_memory() && !h->pool->keeps_nodes.load(std::memory_order_relaxed))
    sched::keep_nodes(h->pool);
  const bool moves = h->engine.moves_data();
  if ((!moves && !(policies_mind_memory() && locality::books_are_kept(memory::areas()))) ||
      locality::is_served(&kBubbles) || refused.load(std::memory_order_relaxed))
    return;
  const int error = locality::serve(me, &kBubbles);
  if (error == 0) return;
  if (moves) h->engine.set_memory_moves(MemoryMoves::kThreads);
  if (!refused.exchange(true, std::memory_order_relaxed) && moves)
    base::say("memory does not follow threads: no thread for that (%s); threads go to their memory",
              strerror(error));
}

int decide_about_memory(sched::Thread* me, bosk_bubble_t bubble, MemoryTrigger trigger) {
  Home* h = home();
  if (h == nullptr) return BOSK_ESTALE;
  const locality::OneDecides alone;
  return Deciding(me, h, trigger).run(bubble);
}

}  // namespace bosk::threads
