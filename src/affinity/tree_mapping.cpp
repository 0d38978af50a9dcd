// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dual recursive bipartitioning without a library: cut the children of a domain in halves, and its threads where little is shared.
#include <algorithm>
#include <numeric>

#include "affinity/mapping.h"

namespace bosk::affinity {
namespace {

using topology::Domain;

/// Beginnings that are tried: the more threads, the fewer, for a cut costs O(threads²).
constexpr size_t kMostSeeds = 8;
constexpr size_t kSeedsTimesThreads = 2048;
constexpr int kMostPasses = 6;
/// Exchanges in a row that make the cut no better end a pass.
constexpr uint32_t kPatience = 32;

class Cutter {
 public:
  explicit Cutter(const SharingGraph& graph)
      : graph_(graph), side_(graph.threads(), kOutside), gain_(graph.threads()) {}

  /// Orders the threads so that the first `left` of them share little with the rest.
  void cut(std::span<uint32_t> threads, size_t left) {
    if (left == 0 || left == threads.size()) return;
    const size_t seeds = std::min(
        {kMostSeeds, threads.size(), std::max<size_t>(1, kSeedsTimesThreads / threads.size())});
    std::vector<uint32_t> best;
    int64_t least = INT64_MAX;
    for (size_t seed = 0; seed < seeds; ++seed) {
      grow(threads, left, threads[seed * threads.size() / seeds]);
      for (int pass = 0; pass < kMostPasses && exchange(threads); ++pass) {
      }
      const int64_t shared = shared_across(threads);
      if (shared >= least) continue;
      least = shared;
      best.clear();
      for (const Side side : {kLeft, kRight})
        for (const uint32_t t : threads)
          if (side_[t] == side) best.push_back(t);
    }
    for (const uint32_t t : threads) side_[t] = kOutside;
    std::ranges::copy(best, threads.begin());
  }

 private:
  enum Side : uint8_t { kOutside, kLeft, kRight };

  /// The left side from one thread on: always the one that shares most with it, and least with the right side.
  void grow(std::span<const uint32_t> threads, size_t left, uint32_t seed) {
    for (const uint32_t t : threads) side_[t] = kRight;
    for (const uint32_t t : threads) {
      gain_[t] = 0;
      for (const SharingGraph::Edge& edge : graph_.of(t))
        if (side_[edge.thread] == kRight) gain_[t] -= edge.weight;
    }
    uint32_t next = seed;
    for (size_t taken = 0;;) {
      side_[next] = kLeft;
      for (const SharingGraph::Edge& edge : graph_.of(next))
        gain_[edge.thread] += 2 * int64_t{edge.weight};
      if (++taken == left) return;
      next = best_of(threads, kRight, gain_, {});
    }
  }

  uint32_t best_of(std::span<const uint32_t> threads, Side side, const std::vector<int64_t>& gain,
                   const std::vector<bool>& is_settled) const {
    uint32_t best = kNoPu;
    for (const uint32_t t : threads)
      if (side_[t] == side && (is_settled.empty() || !is_settled[t]) &&
          (best == kNoPu || gain[t] > gain[best]))
        best = t;
    return best;
  }

  /// Changes sides, for good or until the pass is taken back.
  void flip(uint32_t t) {
    side_[t] = side_[t] == kLeft ? kRight : kLeft;
    gain_[t] = -gain_[t];
    for (const SharingGraph::Edge& edge : graph_.of(t)) {
      if (side_[edge.thread] == kOutside) continue;
      gain_[edge.thread] +=
          side_[edge.thread] == side_[t] ? -2 * int64_t{edge.weight} : 2 * int64_t{edge.weight};
    }
  }

  int64_t weight_between(uint32_t a, uint32_t b) const {
    const auto edges = graph_.of(a);
    const auto at = std::ranges::lower_bound(edges, b, {}, &SharingGraph::Edge::thread);
    return at != edges.end() && at->thread == b ? at->weight : 0;
  }

  int64_t gain_of(uint32_t a, uint32_t b) const {
    return gain_[a] + gain_[b] - 2 * weight_between(a, b);
  }

  /// Who gains most from changing sides, and who is best exchanged with it: that is seldom its own partner, which gains as much by itself, and nothing if both go.
  std::pair<uint32_t, uint32_t> best_exchange(std::span<const uint32_t> threads,
                                              const std::vector<bool>& is_settled) {
    const auto with = [&](uint32_t one, Side side) {
      for (const SharingGraph::Edge& edge : graph_.of(one))
        gain_[edge.thread] -= 2 * int64_t{edge.weight};
      const uint32_t best = best_of(threads, side, gain_, is_settled);
      for (const SharingGraph::Edge& edge : graph_.of(one))
        gain_[edge.thread] += 2 * int64_t{edge.weight};
      return best;
    };
    const uint32_t left = best_of(threads, kLeft, gain_, is_settled);
    const uint32_t right = best_of(threads, kRight, gain_, is_settled);
    if (left == kNoPu || right == kNoPu || weight_between(left, right) == 0) return {left, right};
    const uint32_t other_left = with(right, kLeft);
    const uint32_t other_right = with(left, kRight);
    return gain_of(other_left, right) > gain_of(left, other_right) ? std::pair{other_left, right}
                                                                   : std::pair{left, other_right};
  }

  /// A pass of Kernighan and Lin: exchanges pairs, each thread once, also where that is worse for a while, and goes back to the best that was
  /// met. False: that was the beginning.
  bool exchange(std::span<const uint32_t> threads) {
    for (const uint32_t t : threads) {  // what the cut would be better by
      gain_[t] = 0;
      for (const SharingGraph::Edge& edge : graph_.of(t))
        if (side_[edge.thread] != kOutside)
          gain_[t] += side_[edge.thread] == side_[t] ? -int64_t{edge.weight} : int64_t{edge.weight};
    }
    std::vector<bool> is_settled(graph_.threads());
    std::vector<std::pair<uint32_t, uint32_t>> exchanges;
    int64_t sum = 0;
    int64_t best = 0;
    size_t best_at = 0;
    for (;;) {
      auto [a, b] = best_exchange(threads, is_settled);
      if (a == kNoPu || b == kNoPu) break;
      sum += gain_of(a, b);
      flip(a);
      flip(b);
      is_settled[a] = is_settled[b] = true;
      exchanges.emplace_back(a, b);
      if (sum > best) {
        best = sum;
        best_at = exchanges.size();
      } else if (exchanges.size() - best_at > kPatience) {
        break;
      }
    }
    for (size_t i = exchanges.size(); i > best_at; --i) {
      flip(exchanges[i - 1].first);
      flip(exchanges[i - 1].second);
    }
    return best > 0;
  }

  int64_t shared_across(std::span<const uint32_t> threads) const {
    int64_t shared = 0;
    for (const uint32_t t : threads)
      if (side_[t] == kLeft)
        for (const SharingGraph::Edge& edge : graph_.of(t))
          if (side_[edge.thread] == kRight) shared += edge.weight;
    return shared;
  }

  const SharingGraph& graph_;
  std::vector<Side> side_;
  std::vector<int64_t> gain_;
};

/// The threads go to the children, adjacent ones.
void place(std::span<const Domain> children, std::span<uint32_t> threads, Cutter* cutter,
           Placement* placement) {
  if (threads.empty()) return;
  if (children.size() == 1) {
    const Domain& only = children.front();
    if (!only.is_pu()) return place(only.children(), threads, cutter, placement);
    for (const uint32_t t : threads) (*placement)[t] = only.first_pu;
    return;
  }
  const size_t half = children.size() / 2;
  const uint64_t all = children.back().last_pu - children.front().first_pu + 1;
  const uint64_t of_left = children[half].first_pu - children.front().first_pu;
  // Its share, to the nearest: the other side's is then not more than it may have either.
  const size_t left = (threads.size() * of_left + all / 2) / all;
  cutter->cut(threads, left);
  place(children.first(half), threads.first(left), cutter, placement);
  place(children.subspan(half), threads.subspan(left), cutter, placement);
}

}  // namespace

Placement map_by_tree(const SharingGraph& graph, const topology::Machine& machine) {
  Placement placement(graph.threads(), 0);
  std::vector<uint32_t> threads(graph.threads());
  std::iota(threads.begin(), threads.end(), 0);
  Cutter cutter(graph);
  place({&machine.root(), 1}, threads, &cutter, &placement);
  return placement;
}

}  // namespace bosk::affinity
