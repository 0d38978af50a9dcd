// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Discrete-event simulation of workers over the policy engine: invented PUs run threads of known
// lengths in virtual time. Nothing here decides: what runs where is what the engine answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy_harness.h"

namespace bosk::test {

/// A thread that computes for `left` nanoseconds of virtual time. Phases: it may block in between.
struct SimThread : sched::TreeEntity {
  std::uint64_t length = 0;
  std::uint64_t left = 0;
  std::uint64_t block_every = 0;  ///< blocks after each so many ns of work; 0: never
  std::uint64_t block_for = 0;
  std::uint64_t until_block = 0;
  std::uint32_t pu = topology::kNone;
  std::uint32_t last_pu = topology::kNone;
  std::uint64_t ended_at = 0;
  bool ended = false;
  std::uint64_t moves = 0;  ///< starts on another node than before
};

/// Time that threads ran on each PU.
class Simulation {
 public:
  struct Options {
    std::uint64_t tick = 0;  ///< period of ticks of each running PU; 0: threads run until they end
    std::uint64_t recall_cost = 1'000;
    bool idle_pulls = true;
    bool recalls = true;
  };

  Simulation(World& world, const Options& options) : world_(world), options_(options) {
    pus_.resize(world.machine().n_pus);
    world.engine().set_clock(
        {[](void* context) { return static_cast<Simulation*>(context)->now_; }, this});
    if (options.recalls)
      world.engine().set_recall({[](void* context, sched::TreeEntity& running) {
                                   static_cast<Simulation*>(context)->recalled_.push_back(
                                       static_cast<SimThread*>(&running));
                                 },
                                 this});
  }
  ~Simulation() {
    world_.engine().set_clock({});
    world_.engine().set_recall({});
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  std::uint64_t now() const { return now_; }
  /// Called whenever what runs has changed and everybody has looked for work.
  std::function<void()> settled;
  const SimThread* on(std::uint32_t pu) const { return pus_[pu].thread; }

  /// Until nothing runs, sleeps or can be found any more. Returns the time.
  std::uint64_t run() {
    for (std::uint32_t pu = 0; pu < pus_.size(); ++pu) look_.push_back(pu);
    for (;;) {
      dispatch();
      if (settled) settled();
      if (events_.empty()) return now_;
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      happen(event);
      while (!events_.empty() && events_.top().time == now_) {
        const Event same = events_.top();
        events_.pop();
        happen(same);
      }
    }
  }

  std::uint64_t idle_pulls() const { return pulls_; }

 private:
  struct Pu {
    SimThread* thread = nullptr;
    std::uint64_t since = 0;
    std::uint64_t stamp = 0;  ///< events of earlier dispatches are void
  };
  enum class What : std::uint8_t { kSliceEnd, kWake };
  struct Event {
    std::uint64_t time;
    What what;
    std::uint32_t pu;
    std::uint64_t stamp;
    SimThread* thread;
    bool operator<(const Event& other) const { return time > other.time; }  // earliest on top
  };

  /// Everybody without work looks; those who find nothing are idle; what was moved is looked for again.
  void dispatch() {
    for (bool again = true; again;) {
      again = false;
      handle_recalls();
      std::vector<std::uint32_t> hungry;
      for (std::uint32_t pu = 0; pu < pus_.size(); ++pu)
        if (pus_[pu].thread == nullptr) hungry.push_back(pu);
      std::shuffle(hungry.begin(), hungry.end(), random_);
      std::vector<std::uint32_t> idle;
      for (const std::uint32_t pu : hungry)
        if (!start(pu)) idle.push_back(pu);
      if (!options_.idle_pulls) continue;
      for (const std::uint32_t pu : idle) {
        if (!world_.engine().idle(pu) && recalled_.empty()) continue;
        ++pulls_;
        again = true;
        handle_recalls();
        start(pu);
      }
    }
  }

  bool start(std::uint32_t pu) {
    const sched::Found found = world_.engine().next(pu);
    if (found.entity == nullptr) return false;
    auto* thread = static_cast<SimThread*>(found.entity);
    EXPECT_FALSE(thread->ended);
    EXPECT_EQ(thread->pu, topology::kNone);
    sched::note_running(*thread, pu, found.queue->domain);
    thread->pu = pu;
    const Machine& m = world_.machine();
    if (thread->last_pu != topology::kNone &&
        m.domain_of_pu(thread->last_pu, Kind::kNode) != m.domain_of_pu(pu, Kind::kNode))
      ++thread->moves;
    thread->last_pu = pu;
    queue_of_[thread] = found.queue;
    Pu& p = pus_[pu];
    p.thread = thread;
    p.since = now_;
    ++p.stamp;
    std::uint64_t run = thread->left;
    if (thread->block_every != 0) run = std::min(run, thread->until_block);
    if (options_.tick != 0) run = std::min(run, options_.tick);
    events_.push({now_ + run, What::kSliceEnd, pu, p.stamp, thread});
    return true;
  }

  void account(Pu& p) {
    const std::uint64_t ran = now_ - p.since;
    p.since = now_;
    SimThread& t = *p.thread;
    t.left -= std::min(t.left, ran);
    if (t.block_every != 0) t.until_block -= std::min(t.until_block, ran);
    const std::uint64_t before = t.figures.cpu_ns;
    t.figures.cpu_ns = before == sched::kUnknown64 ? ran : before + ran;
  }

  SimThread* stop(Pu& p) {
    SimThread* thread = std::exchange(p.thread, nullptr);
    thread->pu = topology::kNone;
    ++p.stamp;
    return thread;
  }

  void happen(const Event& event) {
    if (event.what == What::kWake) {
      event.thread->until_block = event.thread->block_every;
      sched::requeue(*event.thread, *queue_of_[event.thread]);
      return;
    }
    Pu& p = pus_[event.pu];
    if (p.stamp != event.stamp) return;
    account(p);
    SimThread& t = *p.thread;
    if (t.left == 0) {
      stop(p);
      t.ended = true;
      t.ended_at = now_;
      world_.engine().done(t);
      if (t.bubble != nullptr) sched::leave(t);
      return;
    }
    if (t.block_every != 0 && t.until_block == 0) {
      stop(p);
      sched::note_blocked(t);
      events_.push({now_ + t.block_for, What::kWake, 0, 0, &t});
      return;
    }
    world_.engine().tick_thread(t);
    // What recalls ask for happens to all at once, this one among them.
    stop(p);
    sched::requeue(t, *queue_of_[&t]);
  }

  void handle_recalls() {
    while (!recalled_.empty()) {
      SimThread* thread = recalled_.back();
      recalled_.pop_back();
      if (thread->pu == topology::kNone) continue;
      Pu& p = pus_[thread->pu];
      account(p);
      if (thread->left == 0) thread->left = 1;  // its end is an event of its own
      stop(p);
      thread->left += options_.recall_cost;
      sched::requeue(*thread, *queue_of_[thread]);
    }
  }

  World& world_;
  Options options_;
  std::mt19937 random_{7};
  std::uint64_t now_ = 1;
  std::vector<Pu> pus_;
  std::vector<std::uint32_t> look_;
  std::priority_queue<Event> events_;
  std::vector<SimThread*> recalled_;
  std::unordered_map<SimThread*, sched::RunQueue*> queue_of_;
  std::uint64_t pulls_ = 0;
};

}  // namespace bosk::test
