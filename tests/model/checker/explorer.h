// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a model again and again until every execution that differs has been seen.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "execution.h"

namespace model {

/// Depth-first search over the choices, re-running the model from its start for each path. Sleep
/// sets: once a step has been explored from a state, it is not taken first again in that state's
/// other branches until a step that does not commute with it has been taken. So of all orders of
/// independent steps one is run to its end. Steps are independent as in operation.h: the same
/// thread may read the same old message before or after another thread's store.
class Explorer {
 public:
  Explorer(const Options& options, std::function<void()> body)
      : options_(options), body_(std::move(body)), execution_(options_) {}

  Result run(std::map<Site, SiteUse>* sites = nullptr) {
    execution_.sites = sites;
    Execution* const outer = Execution::current();
    Execution::current() = &execution_;
    if (options_.random_walks > 0)
      walk_at_random();
    else
      search();
    Execution::current() = outer;
    result_.outcomes = std::move(execution_.outcomes());
    return std::move(result_);
  }

 private:
  struct Node {
    std::vector<Transition> todo;
    std::vector<Transition> sleep;
    std::size_t next = 0;
    int thread = 0;       // that took the step to here
    int preemptions = 0;  // on the way to here
  };

  bool bounded() const { return options_.preemption_bound >= 0; }
  bool use_sleep() const { return options_.sleep_sets && !bounded(); }

  void search() {
    do {
      if (result_.executions + result_.pruned >= options_.max_executions) return;
      run_once();
      if (result_.failed) return;
    } while (backtrack());
    result_.complete = true;
  }

  // Follows the stack to its end, then goes on with first choices.
  void run_once() {
    execution_.set_up(body_);
    bool pruned = false;
    for (std::size_t depth = 0;; ++depth) {
      if (execution_.failed()) break;
      if (execution_.stuttered()) {
        pruned = true;
        break;
      }
      if (depth == depth_) {
        if (execution_.done()) {
          execution_.end();
          break;
        }
        if (!push()) {
          pruned = !execution_.failed();
          break;
        }
      }
      execution_.step(stack_[depth].todo[stack_[depth].next]);
    }
    finish(pruned);
  }

  void finish(bool pruned) {
    if (execution_.failed()) {
      result_.failed = true;
      result_.failure = execution_.failure_with_trace();
    }
    ++(pruned ? result_.pruned : result_.executions);
    execution_.give_up();
  }

  /// Opens a node for the state that the execution is in. False if there is nothing to explore.
  bool push() {
    if (stack_.size() == depth_) stack_.emplace_back();
    Node& node = stack_[depth_];
    node.todo.clear();
    node.sleep.clear();
    node.next = 0;
    node.thread = 0;
    node.preemptions = 0;
    bool stuck = false;
    execution_.enabled(node.todo, stuck);
    if (stuck) {
      execution_.record_deadlock();
      return false;
    }
    if (depth_ > 0) inherit(stack_[depth_ - 1], node);
    if (use_sleep())
      std::erase_if(node.todo, [&](const Transition& t) {
        return std::find(node.sleep.begin(), node.sleep.end(), t) != node.sleep.end();
      });
    if (bounded()) limit(node);
    if (node.todo.empty()) return false;
    ++depth_;
    return true;
  }

  void inherit(const Node& parent, Node& node) const {
    const Transition& taken = parent.todo[parent.next];
    node.thread = taken.thread;
    node.preemptions = parent.preemptions + (preempts(parent, taken) ? 1 : 0);
    if (!use_sleep()) return;
    for (const Transition& t : parent.sleep)
      if (independent(t, taken)) node.sleep.push_back(t);
    for (std::size_t i = 0; i < parent.next; ++i)
      if (independent(parent.todo[i], taken)) node.sleep.push_back(parent.todo[i]);
  }

  /// The thread that came to `node` could go on, and `t` is another's step.
  static bool preempts(const Node& node, const Transition& t) {
    if (node.thread == 0 || t.thread == node.thread) return false;
    return std::any_of(node.todo.begin(), node.todo.end(),
                       [&](const Transition& other) { return other.thread == node.thread; });
  }

  void limit(Node& node) {
    if (node.preemptions < options_.preemption_bound) return;
    const Node before = node;
    std::erase_if(node.todo, [&](const Transition& t) { return preempts(before, t); });
    result_.bounded = result_.bounded || node.todo.size() != before.todo.size();
  }

  bool backtrack() {
    while (depth_ > 0) {
      Node& node = stack_[depth_ - 1];
      if (++node.next < node.todo.size()) return true;
      --depth_;
    }
    return false;
  }

  void walk_at_random() {
    std::mt19937_64 random(options_.seed);
    std::vector<Transition> enabled;
    for (std::uint64_t i = 0; i < options_.random_walks && !result_.failed; ++i) {
      execution_.set_up(body_);
      while (!execution_.failed() && !execution_.stuttered()) {
        if (execution_.done()) {
          execution_.end();
          break;
        }
        enabled.clear();
        bool stuck = false;
        execution_.enabled(enabled, stuck);
        if (stuck) {
          execution_.record_deadlock();
          break;
        }
        execution_.step(enabled[random() % enabled.size()]);
      }
      finish(execution_.stuttered());
    }
  }

  const Options options_;
  const std::function<void()> body_;
  Execution execution_;
  Result result_;
  std::vector<Node> stack_;
  std::size_t depth_ = 0;
};

}  // namespace model
