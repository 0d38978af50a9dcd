// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workers in virtual time: each PU of an invented machine runs what the engine tells it to.
//
// Time goes on from event to event: a thread has done its work, or a time slice is over. A slice ends
// on all PUs at once: bubbles are ticked, those that the policy regenerates get their threads back, and
// every other thread goes behind its equals on the queue where it was found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "policy_harness.h"

namespace bosk::test {

struct SimThread : sched::TreeEntity {
  std::uint64_t work = 0;              ///< that is left
  std::uint32_t pu = topology::kNone;  ///< where it ran last
  std::uint32_t number = 0;            ///< in order of making
};

class Simulation {
 public:
  explicit Simulation(World& world, std::uint64_t slice)
      : world_(world), slice_(slice), running_(world.machine().n_pus) {
    for (std::uint32_t pu = 0; pu < running_.size(); ++pu) order_.push_back(pu);
  }

  sched::NestedBubble& bubble(sched::NestedBubble* around) {
    sched::NestedBubble& made = bubbles_.emplace_back();
    if (around != nullptr) sched::insert(*around, made);
    return made;
  }
  SimThread& thread(sched::NestedBubble& around, std::uint64_t work) {
    SimThread& made = threads_.emplace_back();
    made.work = work;
    made.number = static_cast<std::uint32_t>(threads_.size());
    sched::insert(around, made);
    return made;
  }
  /// A bubble of threads of the same work.
  sched::NestedBubble& team(sched::NestedBubble* around, std::uint32_t n, std::uint64_t work) {
    sched::NestedBubble& made = bubble(around);
    for (std::uint32_t i = 0; i < n; ++i) thread(made, work);
    return made;
  }

  std::deque<SimThread>& threads() { return threads_; }
  std::deque<sched::NestedBubble>& bubbles() { return bubbles_; }
  SimThread* on(std::uint32_t pu) const { return running_[pu].thread; }
  std::uint64_t now() const { return now_; }

  /// Called for every stretch of time in which nothing changes, with its length.
  std::function<void(std::uint64_t)> look = [](std::uint64_t) {};

  /// Whoever has found nothing sleeps until something is announced on a domain of its PU, like a worker, and not only until
  /// the next that happens anywhere.
  bool sleeps = false;

  /// Until nothing runs. Returns the time that it took; what could not be run is a failure.
  std::uint64_t run() {
    for (;;) {
      hand_out();
      std::uint64_t next = (now_ / slice_ + 1) * slice_;
      bool any = false;
      for (const Role& role : running_) {
        if (role.thread == nullptr) continue;
        any = true;
        next = std::min(next, now_ + role.thread->work);
      }
      if (!any) break;
      look(next - now_);
      for (const Role& role : running_)
        if (role.thread != nullptr) role.thread->work -= next - now_;
      now_ = next;
      for (std::uint32_t pu = 0; pu < running_.size(); ++pu)
        if (running_[pu].thread != nullptr && running_[pu].thread->work == 0) end(pu);
      if (now_ % slice_ == 0) end_slice();
    }
    for (const SimThread& thread : threads_)
      if (thread.work != 0) ADD_FAILURE() << "a thread was not run to its end";
    return now_;
  }

  /// Levels between two PUs: 0: the same, 1: siblings, …
  std::uint32_t distance(std::uint32_t a, std::uint32_t b) const {
    const Machine& m = world_.machine();
    if (a == b) return 0;
    return m.pu(a).depth - m.common_ancestor(m.pu(a), m.pu(b)).depth;
  }

  std::uint64_t moves = 0;  ///< times that a thread went on elsewhere than where it ran before
  std::uint64_t moved_levels = 0;  ///< and how far, in sum
  std::uint64_t starts = 0;        ///< times that a thread went on

 private:
  struct Role {
    SimThread* thread = nullptr;
    sched::RunQueue* queue = nullptr;         ///< where it was found
    std::uint64_t asleep_since = UINT64_MAX;  ///< what had been announced then; without a thread
  };

  /// Every PU without a thread looks for one, in an order that is chance, until none finds any and nothing
  /// was let out on a queue either: that calls those who looked before.
  void hand_out() {
    std::uint64_t announced;
    for (bool again = true; again; again = again || world_.announced_in_all() != announced) {
      again = false;
      announced = world_.announced_in_all();
      std::shuffle(order_.begin(), order_.end(), random_);
      for (const std::uint32_t pu : order_) {
        if (running_[pu].thread != nullptr) continue;
        const std::uint64_t announced_here = sleeps ? announced_around(pu) : 0;
        if (sleeps && running_[pu].asleep_since == announced_here) continue;
        sched::Found found = world_.engine().next(pu);
        for (int tries = 0; !found && tries < 100 && world_.engine().idle(pu); ++tries) {
          again = true;  // others may find what it has changed
          found = world_.engine().next(pu);
        }
        if (!found) {
          running_[pu].asleep_since = announced_here;
          continue;
        }
        again = true;
        take(pu, found);
      }
    }
  }
  std::uint64_t announced_around(std::uint32_t pu) const {
    std::uint64_t sum = 0;
    for (const auto* d = &world_.machine().pu(pu); d != nullptr; d = d->parent)
      sum += world_.announced(d->id);
    return sum;
  }
  void take(std::uint32_t pu, const sched::Found& found) {
    auto* thread = static_cast<SimThread*>(found.entity);
    ASSERT_NE(thread, nullptr);
    ASSERT_NE(thread->work, 0u);
    ++starts;
    if (thread->pu != topology::kNone && thread->pu != pu) {
      ++moves;
      moved_levels += distance(thread->pu, pu);
    }
    thread->pu = pu;
    sched::note_running(*thread, pu, world_.machine().pu(pu).id);
    running_[pu] = {thread, found.queue};
  }
  void end(std::uint32_t pu) {
    SimThread* thread = running_[pu].thread;
    running_[pu] = {};
    world_.engine().done(*thread);
    sched::leave(*thread);
  }
  void end_slice() {
    // As many ticks for a bubble as threads of it run, as in PolicyEngine::tick_thread().
    for (const Role& role : running_)
      for (auto* b = role.thread != nullptr ? role.thread->bubble : nullptr; b != nullptr;
           b = b->bubble)
        if (world_.engine().tick(*b)) break;
    for (Role& role : running_) {
      if (role.thread == nullptr) continue;
      sched::requeue(*role.thread, *role.queue);
      role = {};
    }
  }

  World& world_;
  std::uint64_t slice_;
  std::uint64_t now_ = 0;
  std::vector<Role> running_;
  std::vector<std::uint32_t> order_;
  std::mt19937 random_;
  std::deque<SimThread> threads_;
  std::deque<sched::NestedBubble> bubbles_;
};

}  // namespace bosk::test
