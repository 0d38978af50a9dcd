// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles: made, waited for, changed.
#include "policies/registry.h"
#include "sched/address_wait.h"
#include "sched/sequence.h"
#include "threads/api.h"
#include "threads/lending.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

/// What the engine has noted of the one that had the record before: how often it was pulled, above all, or this
/// one would be let alone where that one was. (One that is inserted into another is woken by nobody.)
void forget_evolution(sched::Evolution& e) {
  e.slice_ns.store(0, std::memory_order_relaxed);
  e.burst_at.store(0, std::memory_order_relaxed);
  e.settled_until.store(0, std::memory_order_relaxed);
  e.memory_until.store(0, std::memory_order_relaxed);
  e.pulls.store(0, std::memory_order_relaxed);
  e.phase.store(0, std::memory_order_relaxed);
  e.scope.store(0, std::memory_order_relaxed);
  e.anchor.store(sched::kUnknown32, std::memory_order_relaxed);
}

}  // namespace

int create_bubble(bosk_bubble_t* out) {
  if (out == nullptr) return BOSK_EINVAL;
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  if (home_for(me, &error) == nullptr) return error;
  Inside inside(me);
  BubbleRecord* bubble = bubble_table.take(me->worker->index);
  if (bubble == nullptr) return BOSK_ENOMEM;
  // Whoever let the last of the bubble go that it was may still look at it: advance_around().
  base::SpinGuard lock(bubble->lock);
  bubble->priority = sched::kDefaultPriority;
  bubble->wanted_priority.store(sched::kNoEntity, std::memory_order_relaxed);
  bubble->state = sched::BubbleState::kClosed;
  bubble->relation = sched::Relation::kNone;
  bubble->policy.store(0, std::memory_order_relaxed);
  bubble->affinity.store(0, std::memory_order_relaxed);
  forget_evolution(bubble->evolution);
  bubble->home = bubble->burst_on = bubble->last_queue = nullptr;
  bubble->serving = bubble->in_front = false;
  bubble->figures.load.store(sched::kUnknown32, std::memory_order_relaxed);
  bubble->figures.steals.store(0, std::memory_order_relaxed);
  bubble->burst_level = 0;
  bubble->threads = bubble->arrived = 0;
  bubble->nests = bubble->joined = false;
  bubble->live.store(0, std::memory_order_relaxed);
  bubble->number = BubbleTable::handle_of(bubble);
  // release: for who goes through all bubbles, and was not given its handle.
  bubble->life.store(Life::kAsleep, std::memory_order_release);
  *out = handle_of(bubble);
  return BOSK_OK;
}

int join_bubble(bosk_bubble_t handle) {
  sched::Thread* me = omp::current_thread();
  BubbleRecord* bubble;
  uint32_t live;
  {
    Inside inside(me);
    HeldBubble held(handle);
    if (!held) return BOSK_ESTALE;
    bubble = held.get();
    // What the caller is in stays as it is while it is running.
    if (const ThreadRecord* thread = running(me))
      for (const BubbleRecord* b = bubble_of(*thread); b != nullptr; b = bubble_of(*b))
        if (b == bubble) return BOSK_EDEADLK;
    live = bubble->live.load(std::memory_order_acquire);
    bubble->joined = true;
  }
  const auto handle_number = reinterpret_cast<uintptr_t>(handle);
  while (live != 0) {
    sched::wait_on(bubble->live, live);
    // Empty, it may have been destroyed by another one who waited.
    if (bubble_table.find(handle_number) != bubble) break;
    live = bubble->live.load(std::memory_order_acquire);
  }
  return BOSK_OK;
}

int bubble_barrier(bosk_bubble_t handle, int* serial) {
  sched::Thread* me = omp::current_thread();
  BubbleRecord* bubble;
  uint32_t epoch;
  bool last;
  {
    Inside inside(me);
    HeldBubble held(handle);
    if (!held) return BOSK_ESTALE;
    bubble = held.get();
    const ThreadRecord* thread = running(me);
    if (thread == nullptr || thread->bubble != bubble) return BOSK_EPERM;
    epoch = bubble->epoch.load(std::memory_order_relaxed);
    last = ++bubble->arrived == bubble->threads;
    if (last) {
      bubble->arrived = 0;
      // release: who sees the new number sees what was done before the barrier by all.
      bubble->epoch.store(epoch + 1, std::memory_order_release);
    }
  }
  if (last) sched::wake(bubble->epoch, UINT32_MAX);
  // It cannot be destroyed: the caller is in it.
  while (bubble->epoch.load(std::memory_order_acquire) == epoch)
    sched::wait_on(bubble->epoch, epoch);
  if (serial != nullptr) *serial = last ? 1 : 0;
  return BOSK_OK;
}

int get_bubble_bubble(bosk_bubble_t handle, bosk_bubble_t* outer) {
  if (outer == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  *outer = handle_of(bubble_of(*bubble));
  return BOSK_OK;
}

int set_bubble_priority(bosk_bubble_t handle, int32_t priority) {
  if (priority == sched::kNoEntity) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  note_wish();
  change_priority(*bubble, priority, bubble->life.load(std::memory_order_relaxed) == Life::kAsleep,
                  bubble->wanted_priority);
  return BOSK_OK;
}

int get_bubble_priority(bosk_bubble_t handle, int32_t* priority) {
  if (priority == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  const int32_t wanted = bubble->wanted_priority.load(std::memory_order_relaxed);
  *priority = wanted != sched::kNoEntity
                  ? wanted
                  : std::atomic_ref(bubble->priority).load(std::memory_order_relaxed);
  return BOSK_OK;
}

int set_bubble_load(bosk_bubble_t handle, uint32_t load) {
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  Home* h = home();
  if (!bubble || h == nullptr) return BOSK_ESTALE;
  h->engine.set_load(*bubble, load);
  return BOSK_OK;
}

int get_bubble_load(bosk_bubble_t handle, uint32_t* load) {
  if (load == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  *load = bubble->figures.load.load(std::memory_order_relaxed);
  return BOSK_OK;
}

/// Calls set(bubble, number of the level as in records.h).
template <class F>
static int with_level(bosk_bubble_t handle, const char* name, F&& set) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  const Home* h = settle(me, false, &error);
  if (h == nullptr) return error;
  uint8_t level;
  if (!find_level(h, name, &level)) return BOSK_ENOENT;
  Inside inside(me);
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  set(*bubble, level);
  return BOSK_OK;
}

int set_burst_level(bosk_bubble_t handle, const char* name) {
  return with_level(handle, name, [](BubbleRecord& bubble, uint8_t level) {
    note_wish();
    // relaxed: a worker that finds it at this moment may do as before.
    std::atomic_ref(bubble.burst_level).store(level, std::memory_order_relaxed);
  });
}

int set_affinity(bosk_bubble_t handle, const char* name) {
  return with_level(handle, name, [](BubbleRecord& bubble, uint8_t level) {
    bubble.affinity.store(level, std::memory_order_relaxed);
  });
}

int set_policy(bosk_bubble_t handle, const char* text, topology::Error* why) {
  sched::Thread* me = omp::current_thread();
  int error = BOSK_OK;
  Home* h = settle(me, false, &error);
  if (h == nullptr) return error;
  uint8_t number = 0;
  if (text != nullptr) {
    policies::PolicyPlan plan;
    if (!policies::make_plan(text, *h->machine, &plan, why)) return BOSK_ENOENT;
    if (plan.count != 1 || plan.policy[0].level_given) {
      why->set("for a bubble there is one policy, and none for a level");
      return BOSK_EINVAL;
    }
    number = h->engine.choose(plan.policy[0], why);
    if (number == 0) return BOSK_ENOMEM;
  }
  Inside inside(me);
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  note_wish();
  bubble->policy.store(number, std::memory_order_relaxed);
  return BOSK_OK;
}

int set_slice(bosk_bubble_t handle, uint64_t nanoseconds) {
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  note_wish();
  bubble->evolution.slice_ns.store(nanoseconds, std::memory_order_relaxed);
  return BOSK_OK;
}

int get_slice(bosk_bubble_t handle, uint64_t* nanoseconds) {
  if (nanoseconds == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  *nanoseconds = bubble->evolution.slice_ns.load(std::memory_order_relaxed);
  return BOSK_OK;
}

int set_relation(bosk_bubble_t handle, int relation) {
  if (relation < BOSK_RELATION_NONE || relation > BOSK_RELATION_MEMORY_BESIDE_COMPUTE)
    return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  note_wish();
  base::SpinGuard lock(bubble->lock);
  bubble->relation = static_cast<sched::Relation>(relation);
  if (bubble->relation == sched::Relation::kSequence) sched::note_sequence();
  return BOSK_OK;
}

int get_relation(bosk_bubble_t handle, int* relation) {
  if (relation == nullptr) return BOSK_EINVAL;
  Inside inside(omp::current_thread());
  HeldBubble bubble(handle);
  if (!bubble) return BOSK_ESTALE;
  base::SpinGuard lock(bubble->lock);
  *relation = static_cast<int>(bubble->relation);
  return BOSK_OK;
}

}  // namespace bosk::threads
