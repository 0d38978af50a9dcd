// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The time of a plan: see decision.h.
#include "policies/memory/plan_cost.h"

#include <algorithm>

namespace bosk::policies {
namespace {

using memory::Access;
using memory::CostTable;
using memory::MemoryLoad;
using memory::NodeIndex;

double bandwidth(const CostTable& costs, NodeIndex from, NodeIndex to, Access way,
                 MemoryLoad load) {
  return costs.access(from, to, way, load).bytes_per_ns.value;
}

double pages_of_area(const MemorySituation& s, const UsedArea& area) {
  return static_cast<double>(area.bytes) / s.costs->page_bytes(area.pages);
}

/// ns for the bytes of one use in a round, at the bandwidths of `load`, times one thread's share.
double stream_ns(const MemorySituation& s, const AreaUse& use, NodeIndex from, NodeIndex to,
                 MemoryLoad load) {
  const double bytes = static_cast<double>(s.areas[use.area].bytes) * use.touched;
  double ns = 0;
  if (use.reads > 0) ns += use.reads * bytes / bandwidth(*s.costs, from, to, Access::kRead, load);
  if (use.writes > 0)
    ns += use.writes * bytes / bandwidth(*s.costs, from, to, Access::kWrite, load);
  return ns;
}

bool has_pus(const MemorySituation& s, NodeIndex node) { return s.nodes[node].pus != 0; }

uint32_t nodes_with_pus(const MemorySituation& s) {
  uint32_t count = 0;
  for (NodeIndex node = 0; node < s.costs->n_nodes; ++node) count += has_pus(s, node);
  return count;
}

/// Calls visit(node, share) for each node that a part of the area is on.
template <class Visit>
void each_part(const MemorySituation& s, NodeIndex place, Visit visit) {
  if (place != kSpreadOut) return visit(place, 1.0);
  const double share = 1.0 / std::max(nodes_with_pus(s), 1u);
  for (NodeIndex node = 0; node < s.costs->n_nodes; ++node)
    if (has_pus(s, node)) visit(node, share);
}

class PlanTime {
 public:
  PlanTime(const MemorySituation& situation, const uint32_t* sharers, PlanScratch* scratch,
           MemoryPlan* plan)
      : s_(situation),
        sharers_(sharers),
        scratch_(*scratch),
        plan_(*plan),
        n_(situation.costs->n_nodes) {}

  bool run() {
    if (!scratch_.reset(n_)) return false;
    count_threads();
    add_up_memory();
    double all_threads = 0;
    plan_.cost = {true, 0, 0};
    for (uint32_t e = 0; e < s_.n_entities; ++e) {
      const double threads = std::max(s_.entities[e].threads, 1u);
      const double once = once_ns(e);
      const double rounds = s_.rounds * round_ns(e);
      plan_.entity_ns[e] = once + rounds;
      plan_.cost.once_ns += once * threads;
      plan_.cost.rounds_ns += rounds * threads;
      all_threads += threads;
    }
    if (all_threads > 0) {
      plan_.cost.once_ns /= all_threads;
      plan_.cost.rounds_ns /= all_threads;
    }
    return true;
  }

 private:
  void count_threads() {
    for (NodeIndex node = 0; node < n_; ++node)
      scratch_.threads_on[node] = s_.nodes[node].other_threads;
    for (uint32_t e = 0; e < s_.n_entities; ++e)
      scratch_.threads_on[plan_.entity_node[e]] += s_.entities[e].threads;
    uint32_t busy = 0;
    for (NodeIndex node = 0; node < n_; ++node) busy += scratch_.threads_on[node] != 0;
    load_ = 2 * busy > nodes_with_pus(s_) ? MemoryLoad::kMachine : MemoryLoad::kNode;
  }

  /// What an entity's round needs of each node's memory, alone.
  void find_own(uint32_t e) {
    const UsingEntity& entity = s_.entities[e];
    for (NodeIndex node = 0; node < n_; ++node) scratch_.own[node] = 0;
    for (uint32_t u = entity.first_use; u < entity.first_use + entity.n_uses; ++u)
      each_part(s_, plan_.area[s_.uses[u].area].node, [&](NodeIndex node, double share) {
        scratch_.own[node] += share * stream_ns(s_, s_.uses[u], plan_.entity_node[e], node, load_);
      });
  }

  void add_up_memory() {
    for (uint32_t e = 0; e < s_.n_entities; ++e) {
      find_own(e);
      for (NodeIndex node = 0; node < n_; ++node) {
        scratch_.memory_ns[node] += scratch_.own[node];
        scratch_.users[node] += scratch_.own[node] > 0;
      }
    }
  }

  double round_ns(uint32_t e) {
    const UsingEntity& entity = s_.entities[e];
    const NodeIndex from = plan_.entity_node[e];
    // Threads that share PUs take turns.
    const double pus = s_.nodes[from].pus;
    const double crowd = std::max(1.0, scratch_.threads_on[from] / std::max(pus, 1.0));
    const double threads = std::max(entity.threads, 1u) / crowd;
    double by_threads = 0;
    for (uint32_t u = entity.first_use; u < entity.first_use + entity.n_uses; ++u)
      each_part(s_, plan_.area[s_.uses[u].area].node, [&](NodeIndex node, double share) {
        by_threads += share * stream_ns(s_, s_.uses[u], from, node, MemoryLoad::kAlone) / threads;
      });
    find_own(e);
    double by_memory = 0;
    for (NodeIndex node = 0; node < n_; ++node)
      if (scratch_.own[node] > 0)
        by_memory = std::max(by_memory, std::min(scratch_.memory_ns[node],
                                                 scratch_.own[node] * scratch_.users[node]));
    return std::max(by_threads, by_memory);
  }

  double once_ns(uint32_t e) {
    const UsingEntity& entity = s_.entities[e];
    double ns = 0;
    if (plan_.entity_node[e] != entity.node) {
      const memory::ThreadMoveCost& cost = s_.costs->thread_move;
      ns += cost.fixed_ns.value + double{cost.each_ns.value} * entity.threads;
    }
    for (uint32_t u = entity.first_use; u < entity.first_use + entity.n_uses; ++u) {
      const uint32_t area = s_.uses[u].area;
      const AreaPlan& plan = plan_.area[area];
      if (plan.node == s_.areas[area].node) continue;
      ns += cost_of_move(s_, u, entity.threads, plan.node, plan.next_touch, sharers_[area]);
    }
    return ns;
  }

  const MemorySituation& s_;
  const uint32_t* sharers_;
  PlanScratch& scratch_;
  MemoryPlan& plan_;
  uint32_t n_;
  MemoryLoad load_ = MemoryLoad::kNode;
};

}  // namespace

double cost_of_move(const MemorySituation& s, uint32_t use, uint32_t threads, NodeIndex to,
                    bool next_touch, uint32_t sharers) {
  const AreaUse& u = s.uses[use];
  const UsedArea& area = s.areas[u.area];
  const double pages = pages_of_area(s, area);
  double ns = 0;
  if (next_touch) {
    const memory::NextTouchCost& cost = s.costs->next_touch;
    ns = cost.mark_fixed_ns.value + pages * cost.mark_page_ns.value +
         pages * u.touched * cost.touch_page_ns.value / std::max(std::min(threads, s.movers), 1u);
  } else {
    each_part(s, to, [&](NodeIndex node, double share) {
      if (node == area.node) return;
      const memory::MigrationCost& cost = s.costs->migration(area.node, node, area.pages);
      ns += cost.fixed_ns.value + share * pages * cost.per_page_ns.value / std::max(s.movers, 1u);
    });
  }
  return ns / std::max(sharers, 1u);
}

double cost_of_use(const MemorySituation& s, uint32_t use, uint32_t threads, NodeIndex from,
                   NodeIndex to) {
  const AreaUse& u = s.uses[use];
  return std::max(stream_ns(s, u, from, to, MemoryLoad::kAlone) / std::max(threads, 1u),
                  stream_ns(s, u, from, to, MemoryLoad::kNode));
}

bool cost_of_plan(const MemorySituation& situation, const uint32_t* sharers, PlanScratch* scratch,
                  MemoryPlan* plan) {
  return PlanTime(situation, sharers, scratch, plan).run();
}

bool costs_are_known(const MemorySituation& s) {
  const CostTable& costs = *s.costs;
  bool known = costs.thread_move.fixed_ns.known() && costs.thread_move.each_ns.known();
  for (NodeIndex from = 0; from < costs.n_nodes && known; ++from)
    for (NodeIndex to = 0; to < costs.n_nodes && known; ++to) {
      for (const memory::PageKind pages : {memory::PageKind::kBase, memory::PageKind::kHuge})
        known = known && (from == to || costs.migration(from, to, pages).per_page_ns.known());
      if (!has_pus(s, from)) continue;
      for (const Access way : {Access::kRead, Access::kWrite})
        for (const MemoryLoad load : {MemoryLoad::kAlone, MemoryLoad::kNode, MemoryLoad::kMachine})
          known = known && costs.access(from, to, way, load).bytes_per_ns.known();
    }
  return known;
}

}  // namespace bosk::policies
