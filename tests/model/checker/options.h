// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the user of the checker asks for and gets.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>

namespace model {

/// A memory order written in the source: one call of an atomic operation. compare_exchange has two.
struct Site {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
  bool failure_order = false;

  auto key() const { return std::tie(file, line, column, failure_order); }
  bool operator<(const Site& other) const { return key() < other.key(); }
  bool operator==(const Site& other) const { return key() == other.key(); }
};

struct SiteUse {
  std::memory_order order = std::memory_order_relaxed;
  bool barrier = false;  // a light or heavy barrier: it is there or not
};

/// A planted bug: the order at `site` becomes `order` (a fence or barrier disappears).
struct Weakening {
  Site site;
  std::memory_order order = std::memory_order_relaxed;
};

struct Options {
  std::uint64_t max_executions = 2'000'000;
  /// Explore only executions with at most so many switches away from a thread that could go on;
  /// -1: no bound. With a bound, sleep sets are off (they could prune the one that fits).
  int preemption_bound = -1;
  /// How many times per execution a futex wait may return for no reason, a timed one may run out,
  /// and a weak compare-exchange may fail for no reason.
  int spurious_wakes = 0;
  int timeouts = 0;
  int spurious_cas = 0;
  /// > 0: that many random executions instead of all of them.
  std::uint64_t random_walks = 0;
  std::uint64_t seed = 1;
  /// An execution longer than this is a loop without A::pause().
  int max_steps = 2000;
  bool sleep_sets = true;
  const Weakening* weakening = nullptr;
};

struct Result {
  std::uint64_t executions = 0;  // ran to the end, all different
  std::uint64_t pruned = 0;  // given up: the same as another one, or a spin that saw nothing new
  bool complete = false;     // nothing is left to explore within the bounds
  bool bounded = false;      // the preemption bound cut something off
  bool failed = false;
  std::string failure;             // what went wrong, and the steps that led there
  std::set<std::string> outcomes;  // everything that the executions passed to model::outcome()

  /// The property holds in every execution within what the model covers.
  bool proved() const { return complete && !bounded && !failed; }
};

}  // namespace model
