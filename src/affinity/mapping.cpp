// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a mapping costs, where its domains may change places, and whether it is worth the moves.
#include "affinity/mapping.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "topology/machine.h"

namespace bosk::affinity {
namespace {

using topology::Domain;
using topology::Kind;
using topology::Machine;

/// Gains below this share of the cost are not worth that threads move, and their caches with them.
constexpr double kLeastGain = .02;

/// So many threads are mapped in both ways, for the better one.
constexpr uint32_t kMostForBoth = 256;

/// Beyond what the best of all placements gains where counts are chance.
constexpr double kStandardDeviations = 3;

bool are_alike(const Domain& a, const Domain& b) {
  if (a.n_pus() != b.n_pus() || a.n_children != b.n_children || a.n_nodes != b.n_nodes)
    return false;
  for (uint32_t i = 0; i < a.n_children; ++i)
    if (!are_alike(a.first_child[i], b.first_child[i])) return false;
  return true;
}

/// The child of `domain` that has the PU; n_children: none.
uint32_t child_with(const Domain& domain, uint32_t pu) {
  const auto children = domain.children();
  const auto at =
      std::ranges::find_if(children, [&](const Domain& child) { return child.contains_pu(pu); });
  return static_cast<uint32_t>(at - children.begin());
}

/// Which child each child's threads should go to, so that most of them are there already.
std::vector<uint32_t> best_exchange(const Domain& domain, const Placement& placement,
                                    std::span<const uint32_t> present) {
  const uint32_t children = domain.n_children;
  std::vector<uint32_t> together(size_t{children} * children);
  for (size_t t = 0; t < placement.size(); ++t) {
    const uint32_t to = child_with(domain, placement[t]);
    const uint32_t from = child_with(domain, present[t]);
    if (to < children && from < children) ++together[size_t{to} * children + from];
  }
  std::vector<uint32_t> pairs;
  for (uint32_t pair = 0; pair < together.size(); ++pair)
    if (together[pair] != 0) pairs.push_back(pair);
  // Where two are as good the one that stays comes first.
  std::ranges::sort(pairs, [&](uint32_t a, uint32_t b) {
    if (together[a] != together[b]) return together[a] > together[b];
    const bool a_stays = a / children == a % children;
    const bool b_stays = b / children == b % children;
    return a_stays != b_stays ? a_stays : a < b;
  });
  std::vector<uint32_t> goes_to(children, kNoPu);
  std::vector<bool> is_taken(children);
  const auto settle = [&](uint32_t child, uint32_t place) {
    if (goes_to[child] != kNoPu || is_taken[place] ||
        !are_alike(domain.first_child[child], domain.first_child[place]))
      return;
    goes_to[child] = place;
    is_taken[place] = true;
  };
  for (const uint32_t pair : pairs) settle(pair / children, pair % children);
  for (uint32_t child = 0; child < children; ++child) settle(child, child);
  for (uint32_t child = 0; child < children; ++child)
    for (uint32_t place = 0; place < children; ++place) settle(child, place);
  return goes_to;
}

void keep_below(const Domain& domain, Placement* placement, std::span<const uint32_t> present,
                const Machine& machine, const SharingGraph& graph) {
  if (domain.is_pu()) return;
  const std::vector<uint32_t> goes_to = best_exchange(domain, *placement, present);
  Placement exchanged = *placement;
  for (uint32_t& pu : exchanged) {
    const uint32_t child = child_with(domain, pu);
    if (child == domain.n_children) continue;
    pu += domain.first_child[goes_to[child]].first_pu - domain.first_child[child].first_pu;
  }
  // Nodes that look alike need not be equally far from each other.
  const bool is_same_distance =
      domain.n_children == 2 || domain.kind != Kind::kMachine || machine.n_nodes <= 2;
  if (exchanged != *placement && (is_same_distance || total_cost(graph, machine, exchanged) <=
                                                          total_cost(graph, machine, *placement)))
    *placement = std::move(exchanged);
  for (const Domain& child : domain.children())
    keep_below(child, placement, present, machine, graph);
}

/// No domain has more threads than its share of the machine, rounded up at each level.
bool is_balanced(const Placement& placement, const Machine& machine) {
  std::vector<uint32_t> before(machine.n_pus + 1);  // threads on lower PUs
  for (const uint32_t pu : placement) ++before[pu + 1];
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu) before[pu + 1] += before[pu];
  return std::ranges::all_of(machine.domains(), [&](const Domain& domain) {
    const uint64_t share = uint64_t{domain.n_pus()} * placement.size();
    const uint32_t threads = before[domain.last_pu + 1] - before[domain.first_pu];
    return threads <= (share + machine.n_pus - 1) / machine.n_pus + (domain.is_pu() ? 0 : 1);
  });
}

/// Calls visit(a, b, events) for all that have shared something and have a place.
template <typename Visit>
void for_each_pair(const SharingMatrix& matrix, std::span<const uint32_t> placement,
                   Visit&& visit) {
  for (uint32_t a = 1; a < matrix.threads(); ++a) {
    if (placement[a] == kNoPu) continue;
    const std::span<const uint32_t> row = matrix.row(a);
    for (uint32_t b = 0; b < a; ++b)
      if (row[b] != 0 && placement[b] != kNoPu) visit(a, b, row[b]);
  }
}

}  // namespace

SharingGraph strongest_sharing(const SharingMatrix& matrix, uint32_t partners) {
  const uint32_t threads = matrix.threads();
  // Both ends have an edge that one of them chose.
  std::vector<std::vector<SharingGraph::Edge>> chosen(threads);
  std::vector<SharingGraph::Edge> of_one;
  for (uint32_t t = 0; t < threads; ++t) {
    of_one.clear();
    const std::span<const uint32_t> row = matrix.row(t);
    for (uint32_t other = 0; other < threads; ++other)
      if (row[other] != 0) of_one.push_back({other, row[other]});
    if (of_one.size() > partners) {
      std::ranges::nth_element(of_one, of_one.begin() + partners,
                               [](const auto& a, const auto& b) { return a.weight > b.weight; });
      of_one.resize(partners);
    }
    for (const SharingGraph::Edge& edge : of_one) {
      chosen[t].push_back(edge);
      chosen[edge.thread].push_back({t, edge.weight});
    }
  }
  SharingGraph graph;
  graph.first.push_back(0);
  for (auto& edges : chosen) {
    std::ranges::sort(edges, {}, &SharingGraph::Edge::thread);
    const auto twice = std::ranges::unique(edges, {}, &SharingGraph::Edge::thread);
    graph.edges.insert(graph.edges.end(), edges.begin(), twice.begin());
    graph.first.push_back(static_cast<uint32_t>(graph.edges.size()));
  }
  return graph;
}

uint32_t sharing_cost(const Machine& machine, uint32_t a, uint32_t b) {
  if (a == b) return 0;
  const uint32_t from = machine.node_of_pu(a);
  const uint32_t to = machine.node_of_pu(b);
  constexpr uint32_t kCore = 1;
  constexpr uint32_t kL2 = 2;
  constexpr uint32_t kL3 = 4;
  if (from != to) return std::max(machine.node_distance(from, to), topology::kLocalDistance + 1);
  const Domain& common = machine.common_ancestor(machine.pu(a), machine.pu(b));
  const auto is_inside = [&](Kind kind) {
    const Domain* domain = machine.domain_of_pu(a, kind);
    return domain != nullptr && domain->first_pu <= common.first_pu &&
           domain->last_pu >= common.last_pu;
  };
  if (is_inside(Kind::kCore)) return kCore;
  if (is_inside(Kind::kL2)) return kL2;
  if (is_inside(Kind::kL3)) return kL3;
  return topology::kLocalDistance;
}

double total_cost(const SharingGraph& graph, const Machine& machine,
                  std::span<const uint32_t> placement) {
  double cost = 0;
  for (uint32_t t = 0; t < graph.threads(); ++t)
    for (const SharingGraph::Edge& edge : graph.of(t)) {
      if (edge.thread >= t || placement[t] == kNoPu || placement[edge.thread] == kNoPu) continue;
      cost += double{1} * edge.weight * sharing_cost(machine, placement[t], placement[edge.thread]);
    }
  return cost;
}

double total_cost(const SharingMatrix& matrix, const Machine& machine,
                  std::span<const uint32_t> placement) {
  double cost = 0;
  for_each_pair(matrix, placement, [&](uint32_t a, uint32_t b, uint32_t events) {
    cost += double{1} * events * sharing_cost(machine, placement[a], placement[b]);
  });
  return cost;
}

void keep_in_place(Placement* placement, std::span<const uint32_t> present, const Machine& machine,
                   const SharingGraph& graph) {
  keep_below(machine.root(), placement, present, machine, graph);
}

Proposal propose(const SharingMatrix& matrix, const Machine& machine,
                 std::span<const uint32_t> present) {
  const SharingGraph graph = strongest_sharing(matrix);
  Placement now(present.begin(), present.end());
  now.resize(graph.threads(), kNoPu);

  Proposal best;
  best.cost_now = total_cost(matrix, machine, now);
  best.cost_then = std::numeric_limits<double>::infinity();
  const auto consider = [&](Placement placement, const char* by) {
    keep_in_place(&placement, now, machine, graph);
    const double cost = total_cost(matrix, machine, placement);
    if (cost >= best.cost_then) return;
    best.placement = std::move(placement);
    best.cost_then = cost;
    best.by = by;
  };
  Placement by_scotch = map_by_scotch(graph, machine, nullptr);
  const bool has_scotch = !by_scotch.empty() && is_balanced(by_scotch, machine);
  if (has_scotch) consider(std::move(by_scotch), "Scotch");
  // Ours takes four times as long.
  if (!has_scotch || graph.threads() <= kMostForBoth) consider(map_by_tree(graph, machine), "tree");
  for (uint32_t t = 0; t < graph.threads(); ++t) best.moves += best.placement[t] != now[t] ? 1 : 0;

  double variance = 0;
  for_each_pair(matrix, now, [&](uint32_t a, uint32_t b, uint32_t events) {
    const double gained = double{1} * sharing_cost(machine, now[a], now[b]) -
                          sharing_cost(machine, best.placement[a], best.placement[b]);
    variance += events * gained * gained;
  });
  const double by_chance =
      (std::sqrt(2 * std::lgamma(graph.threads() + 1.0)) + kStandardDeviations) *
      std::sqrt(variance);
  const double gained = best.cost_now - best.cost_then;
  best.is_worth = best.moves != 0 && gained > by_chance && gained >= kLeastGain * best.cost_now;
  return best;
}

}  // namespace bosk::affinity
