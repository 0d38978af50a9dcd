// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A machine with queues and policies, trees of bubbles, and workers played one after another.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "invented_machine.h"
#include "policies/engine.h"
#include "policies/registry.h"

namespace bosk::test {

/// A machine on which the policies of a plan act.
class World {
 public:
  World(MachinePtr machine, const policies::PolicyPlan& plan) : machine_(std::move(machine)) {
    start(plan);
  }
  World(MachinePtr machine, const char* plan_text) : machine_(std::move(machine)) {
    policies::PolicyPlan plan;
    topology::Error error;
    EXPECT_TRUE(policies::make_plan(plan_text, *machine_, &plan, &error)) << error.text;
    start(plan);
  }
  ~World() {
    engine_.stop();
    // The entities may be gone already.
    for (std::uint32_t d = 0; d < machine_->n_domains; ++d) queues_.of(d).first = nullptr;
    queues_.release();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Machine& machine() const { return *machine_; }
  policies::PolicyEngine& engine() { return engine_; }
  sched::RunQueue& queue(std::uint32_t domain) { return queues_.of(domain); }
  /// Entities announced on a domain since the start.
  std::uint32_t announced(std::uint32_t domain) const { return announced_[domain]; }
  std::uint64_t announced_in_all() const {
    std::uint64_t sum = 0;
    for (const auto& of_domain : announced_) sum += of_domain;
    return sum;
  }

 private:
  void start(const policies::PolicyPlan& plan) {
    topology::Error error;
    if (!queues_.build(*machine_)) std::abort();
    announced_ = std::deque<std::atomic<std::uint32_t>>(machine_->n_domains);
    const policies::ReleasedHook hook{[](void* context, std::uint32_t domain, std::uint32_t count) {
                                        static_cast<World*>(context)->announced_[domain] += count;
                                      },
                                      this};
    if (!engine_.start(queues_, plan, hook, &error)) {
      ADD_FAILURE() << error.text;
      std::abort();
    }
  }

  MachinePtr machine_;
  sched::DomainQueues queues_;
  policies::PolicyEngine engine_;
  std::deque<std::atomic<std::uint32_t>> announced_;  // workers of stress tests write at once
};

/// A random tree of bubbles: bubble 0 is the outermost.
struct Tree {
  std::deque<sched::NestedBubble> bubbles;
  std::deque<sched::TreeEntity> threads;

  Tree(std::uint32_t seed, std::uint32_t n_bubbles, std::uint32_t n_threads, bool loads = false)
      : bubbles(n_bubbles), threads(n_threads) {
    std::mt19937 random(seed);
    for (std::uint32_t i = 1; i < n_bubbles; ++i) sched::insert(bubbles[random() % i], bubbles[i]);
    for (sched::TreeEntity& thread : threads) {
      if (loads && random() % 2 == 0) thread.figures.load = 1 + random() % 20;
      sched::insert(bubbles[random() % n_bubbles], thread);
    }
  }
  /// `groups` bubbles of `size` threads in one bubble.
  static Tree groups(std::uint32_t groups, std::uint32_t size) {
    Tree tree(0, 1 + groups, 0);
    for (std::uint32_t g = 0; g < groups; ++g) {
      sched::NestedBubble& bubble = tree.bubbles[1 + g];
      if (bubble.bubble != &tree.bubbles[0]) {
        sched::remove(bubble);
        sched::insert(tree.bubbles[0], bubble);
      }
      for (std::uint32_t i = 0; i < size; ++i) sched::insert(bubble, tree.threads.emplace_back());
    }
    return tree;
  }
  Tree(Tree&&) = default;

  bool owns(const sched::Entity* entity, std::size_t* number) const {
    for (std::size_t i = 0; i < threads.size(); ++i) {
      if (&threads[i] != entity) continue;
      *number = i;
      return true;
    }
    return false;
  }
};

/// Where a thread was found.
struct Finding {
  std::size_t thread;
  std::uint32_t pu;
  std::uint32_t domain;
};

/// PUs in random order take and end threads until none finds anything.
inline std::vector<Finding> run_all(World& world, Tree& tree, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Finding> findings;
  std::vector<std::uint32_t> pus(world.machine().n_pus);
  for (std::uint32_t i = 0; i < pus.size(); ++i) pus[i] = i;
  for (bool any = true; any;) {
    any = false;
    std::shuffle(pus.begin(), pus.end(), random);
    for (const std::uint32_t pu : pus) {
      const sched::Found found = world.engine().next(pu);
      if (found.entity == nullptr) continue;
      any = true;
      std::size_t number = 0;
      if (!tree.owns(found.entity, &number)) {
        ADD_FAILURE() << "a stranger was found";
        return findings;
      }
      findings.push_back({number, pu, found.queue->domain});
      auto& thread = tree.threads[number];
      world.engine().done(thread);
      sched::leave(thread);
    }
  }
  return findings;
}

/// Every thread of the tree was found exactly once, by a PU that the queue covers.
inline void expect_all_once(const World& world, const Tree& tree,
                            const std::vector<Finding>& findings) {
  std::vector<int> times(tree.threads.size(), 0);
  for (const Finding& f : findings) {
    ++times[f.thread];
    EXPECT_TRUE(world.machine().domain_array[f.domain].contains_pu(f.pu));
  }
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], 1) << "thread " << i;
}

}  // namespace bosk::test
