// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes the plans and takes the cheapest.
#include "policies/memory/decision.h"

#include <algorithm>

#include "policies/memory/plan_cost.h"

namespace bosk::policies {
namespace {

using base::MappedArray;
using memory::NodeIndex;

class Decider {
 public:
  Decider(const MemorySituation& situation, MemoryDecision* decision)
      : s_(situation), out_(*decision), n_(situation.costs->n_nodes) {}
  ~Decider() {
    for (MemoryPlan& plan : plans_) plan.release();
    scratch_.release();
    sharers_.release();
    room_.release();
    seats_.release();
    order_.release();
    common_.release();
    lead_.release();
    others_.release();
    rank_.release();
    worth_.release();
    most_.release();
    weight_.release();
  }
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;

  void run() {
    if (!prepare() || !costs_are_known(s_) || !try_plans()) {
      out_.unknown = true;
      for (PlanCost& cost : out_.costs) cost = {};
    }
    write_down(out_.unknown ? MemoryAction::kNothing : choose());
  }

 private:
  MemoryPlan& plan_of(MemoryAction action) { return plans_[static_cast<unsigned>(action)]; }
  bool allowed(MemoryAction action) const { return (s_.allowed & action_bit(action)) != 0; }

  bool prepare() {
    if (!sharers_.resize(s_.n_areas) || !common_.resize(s_.n_areas) || !lead_.resize(s_.n_areas) ||
        !others_.resize(s_.n_areas) || !rank_.resize(s_.n_uses) || !worth_.resize(s_.n_uses) ||
        !most_.resize(n_) || !room_.resize(n_) || !seats_.resize(n_) ||
        !order_.resize(s_.n_entities) || !weight_.resize(s_.n_entities)) {
      return false;
    }
    for (uint32_t u = 0; u < s_.n_uses; ++u) ++sharers_[s_.uses[u].area];
    for (MemoryPlan& plan : plans_)
      if (!plan.resize(s_)) return false;
    return true;
  }

  /// Everything stays.
  void reset(MemoryPlan* plan) {
    for (uint32_t e = 0; e < s_.n_entities; ++e) plan->entity_node[e] = s_.entities[e].node;
    for (uint32_t a = 0; a < s_.n_areas; ++a) plan->area[a] = {s_.areas[a].node, false};
    for (NodeIndex node = 0; node < n_; ++node) room_[node] = s_.nodes[node].free_bytes;
  }

  bool take_room(NodeIndex node, uint64_t bytes) {
    if (room_[node] < bytes) return false;
    room_[node] -= bytes;
    return true;
  }

  bool can_move(uint32_t area, bool next_touch) const {
    const UsedArea& a = s_.areas[area];
    return a.movable && (!next_touch || a.markable) && a.bytes != 0;
  }

  bool moves_data(MemoryPlan* plan) const {
    for (uint32_t a = 0; a < s_.n_areas; ++a)
      if (plan->area[a].node != s_.areas[a].node) return true;
    return false;
  }
  bool moves_threads(MemoryPlan* plan) const {
    for (uint32_t e = 0; e < s_.n_entities; ++e)
      if (plan->entity_node[e] != s_.entities[e].node) return true;
    return false;
  }

  /// What an entity saves in all rounds if the area of the use comes to `to`, less what that costs.
  double gain(uint32_t use, const UsingEntity& entity, NodeIndex from, NodeIndex to,
              bool next_touch) const {
    const uint32_t area = s_.uses[use].area;
    const NodeIndex now = s_.areas[area].node;
    return s_.rounds * (cost_of_use(s_, use, entity.threads, from, now) -
                        cost_of_use(s_, use, entity.threads, from, to)) -
           cost_of_move(s_, use, entity.threads, to, next_touch, sharers_[area]);
  }

  enum class Means : uint8_t { kNow, kNextTouch, kCheaper };

  /// By `means`, or by the cheaper one of those that are allowed.
  bool goes_by_next_touch(uint32_t use, const UsingEntity& entity, NodeIndex to,
                          Means means) const {
    if (means != Means::kCheaper) return means == Means::kNextTouch;
    return allowed(MemoryAction::kNextTouch) && can_move(s_.uses[use].area, true) &&
           s_.costs->next_touch.touch_page_ns.known() &&
           cost_of_move(s_, use, entity.threads, to, true, 1) <
               cost_of_move(s_, use, entity.threads, to, false, 1);
  }

  /// Areas follow those who use them: where most of the users of one are on one node, it goes there. Those first that are worth
  /// most for the room that they take.
  void bring_areas(MemoryPlan* plan, Means means, bool only_if_it_pays) {
    find_common_nodes(plan);
    for (uint32_t e = 0; e < s_.n_entities; ++e) {
      const UsingEntity& entity = s_.entities[e];
      const NodeIndex to = plan->entity_node[e];
      uint32_t count = 0;
      for (uint32_t u = entity.first_use; u < entity.first_use + entity.n_uses; ++u) {
        const uint32_t area = s_.uses[u].area;
        if (s_.areas[area].node == to || common_[area] != to ||
            !can_move(area, means == Means::kNextTouch)) {
          continue;
        }
        const double g = gain_of_all(u, entity, goes_by_next_touch(u, entity, to, means));
        if (only_if_it_pays && g <= 0) continue;
        worth_[u] = g / static_cast<double>(s_.areas[area].bytes);
        rank_[count++] = u;
      }
      std::sort(rank_.data(), rank_.data() + count, [this](uint32_t a, uint32_t b) {
        return worth_[a] != worth_[b] ? worth_[a] > worth_[b] : a < b;
      });
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t area = s_.uses[rank_[i]].area;
        if (plan->area[area].node == s_.areas[area].node && take_room(to, s_.areas[area].bytes))
          plan->area[area] = {to, goes_by_next_touch(rank_[i], entity, to, means)};
      }
    }
  }

  void each_use(auto visit) const {
    for (uint32_t e = 0; e < s_.n_entities; ++e)
      for (uint32_t u = 0; u < s_.entities[e].n_uses; ++u) visit(e, s_.entities[e].first_use + u);
  }

  /// Per area: the node from which more than half of its accesses come by the plan, or kNoNode; and what those who are
  /// elsewhere win if it goes there (most often they lose). A few threads that are somewhere else just now, because a PU
  /// was idle there, do not keep the team's memory where nobody is. The node that a majority is on outlasts all others
  /// when their accesses are set off against each other (Boyer and Moore 1991); whether there is one is counted then.
  void find_common_nodes(MemoryPlan* plan) {
    std::fill_n(common_.data(), s_.n_areas, memory::kNoNode);
    std::fill_n(lead_.data(), s_.n_areas, 0.0);
    const auto accesses = [this](uint32_t u) {
      return double{s_.uses[u].touched} * (s_.uses[u].reads + s_.uses[u].writes);
    };
    each_use([&](uint32_t e, uint32_t u) {
      const uint32_t area = s_.uses[u].area;
      if (lead_[area] == 0) common_[area] = plan->entity_node[e];
      lead_[area] += common_[area] == plan->entity_node[e] ? accesses(u) : -accesses(u);
      if (lead_[area] >= 0) return;
      lead_[area] = -lead_[area];
      common_[area] = plan->entity_node[e];
    });
    std::fill_n(lead_.data(), s_.n_areas, 0.0);
    std::fill_n(others_.data(), s_.n_areas, 0.0);
    constexpr double kRounded = 1 - 1e-6;  // a half is no more than a half
    each_use([&](uint32_t e, uint32_t u) {
      const uint32_t area = s_.uses[u].area;
      const UsingEntity& entity = s_.entities[e];
      const NodeIndex at = plan->entity_node[e];
      lead_[area] += common_[area] == at ? kRounded * accesses(u) : -accesses(u);
      if (common_[area] != at && common_[area] != memory::kNoNode)
        others_[area] += s_.rounds * entity.threads *
                         (cost_of_use(s_, u, entity.threads, at, s_.areas[area].node) -
                          cost_of_use(s_, u, entity.threads, at, common_[area]));
    });
    for (uint32_t a = 0; a < s_.n_areas; ++a)
      if (lead_[a] <= 0) common_[a] = memory::kNoNode;
  }

  /// Of a thread of the entity, if the area goes where most of its users are.
  double gain_of_all(uint32_t use, const UsingEntity& entity, bool next_touch) const {
    const uint32_t area = s_.uses[use].area;
    return gain(use, entity, common_[area], common_[area], next_touch) +
           others_[area] / std::max(entity.threads, 1u);
  }

  void plan_one_area(MemoryPlan* plan) {
    find_common_nodes(plan);
    for (uint32_t e = 0; e < s_.n_entities; ++e) {
      const UsingEntity& entity = s_.entities[e];
      uint32_t best = UINT32_MAX;
      double best_gain = 0;
      for (uint32_t u = entity.first_use; u < entity.first_use + entity.n_uses; ++u) {
        const uint32_t area = s_.uses[u].area;
        if (s_.areas[area].node == entity.node || !can_move(area, false) ||
            room_[entity.node] < s_.areas[area].bytes || common_[area] != entity.node) {
          continue;
        }
        const double g = gain_of_all(u, entity, false);
        if (best == UINT32_MAX || g > best_gain) {
          best = area;
          best_gain = g;
        }
      }
      if (best != UINT32_MAX && take_room(entity.node, s_.areas[best].bytes))
        plan->area[best] = {entity.node, false};
    }
  }

  /// What the entity would take on `node`, by itself; with areas that come along where that pays.
  double cost_at(const UsingEntity& entity, NodeIndex node, bool areas_follow) const {
    double ns = 0;
    if (node != entity.node) {
      const memory::ThreadMoveCost& cost = s_.costs->thread_move;
      ns = cost.fixed_ns.value + double{cost.each_ns.value} * entity.threads;
    }
    for (uint32_t u = entity.first_use; u < entity.first_use + entity.n_uses; ++u) {
      const uint32_t area = s_.uses[u].area;
      const NodeIndex at = s_.areas[area].node;
      ns += s_.rounds * cost_of_use(s_, u, entity.threads, node, at);
      if (!areas_follow || at == node || sharers_[area] != 1 || !can_move(area, false)) continue;
      const double saved = gain(u, entity, node, node, false);
      if (saved > 0) ns -= saved;
    }
    return ns;
  }

  /// Entities go where they take least. Those with most to lose choose first.
  void assign(MemoryPlan* plan, bool areas_follow) {
    find_limits();
    for (NodeIndex node = 0; node < n_; ++node) {
      const uint32_t others = s_.nodes[node].other_threads;
      seats_[node] = most_[node] > others ? most_[node] - others : 0;
    }
    for (uint32_t e = 0; e < s_.n_entities; ++e) {
      const UsingEntity& entity = s_.entities[e];
      order_[e] = e;
      double best = 0;
      double second = 0;
      uint32_t seen = 0;
      for (NodeIndex node = 0; node < n_; ++node) {
        if (s_.nodes[node].pus == 0) continue;
        const double cost = cost_at(entity, node, areas_follow);
        if (seen == 0 || cost < best) {
          second = seen == 0 ? cost : best;
          best = cost;
        } else if (seen == 1 || cost < second) {
          second = cost;
        }
        ++seen;
      }
      // Who may not move has its place first.
      weight_[e] = entity.movable ? (second - best) * entity.threads : 1e300;
    }
    std::sort(order_.data(), order_.data() + s_.n_entities, [this](uint32_t a, uint32_t b) {
      return weight_[a] != weight_[b] ? weight_[a] > weight_[b] : a < b;
    });
    for (uint32_t i = 0; i < s_.n_entities; ++i) {
      const uint32_t e = order_[i];
      const UsingEntity& entity = s_.entities[e];
      NodeIndex best = entity.node;
      double best_cost = 0;
      bool found = false;
      for (NodeIndex node = 0; node < n_ && entity.movable; ++node) {
        if (s_.nodes[node].pus == 0 || seats_[node] < entity.threads) continue;
        const double cost = cost_at(entity, node, areas_follow);
        // Of equals the one that it is on.
        if (!found || cost < best_cost || (cost == best_cost && node == entity.node)) {
          best = node;
          best_cost = cost;
          found = true;
        }
      }
      plan->entity_node[e] = best;
      seats_[best] -= std::min(seats_[best], entity.threads);
    }
    send_back(plan);
  }

  /// No node gets more threads than it has PUs, or than it has now.
  void find_limits() {
    for (NodeIndex node = 0; node < n_; ++node) most_[node] = s_.nodes[node].other_threads;
    for (uint32_t e = 0; e < s_.n_entities; ++e)
      most_[s_.entities[e].node] += s_.entities[e].threads;
    for (NodeIndex node = 0; node < n_; ++node)
      most_[node] = std::max(most_[node], s_.nodes[node].pus);
  }

  /// One that found no seat stays, perhaps on a node whose seats others have taken: of those that came there the last
  /// ones go home again, which may make another node too full. In the end all would be at home.
  void send_back(MemoryPlan* plan) {
    constexpr uint32_t kMostRounds = 16;
    for (uint32_t round = 0;; ++round) {
      for (NodeIndex node = 0; node < n_; ++node) seats_[node] = s_.nodes[node].other_threads;
      for (uint32_t e = 0; e < s_.n_entities; ++e)
        seats_[plan->entity_node[e]] += s_.entities[e].threads;
      bool fits = true;
      for (uint32_t i = s_.n_entities; i-- > 0;) {
        const uint32_t e = order_[i];
        const UsingEntity& entity = s_.entities[e];
        NodeIndex& node = plan->entity_node[e];
        if (node == entity.node || (seats_[node] <= most_[node] && round < kMostRounds)) continue;
        seats_[node] -= entity.threads;
        seats_[entity.node] += entity.threads;
        node = entity.node;
        fits = false;
      }
      if (fits || round >= kMostRounds) return;
    }
  }

  void spread(MemoryPlan* plan) {
    uint32_t with_pus = 0;
    for (NodeIndex node = 0; node < n_; ++node) with_pus += s_.nodes[node].pus != 0;
    if (with_pus < 2) return;
    for (uint32_t a = 0; a < s_.n_areas; ++a) {
      if (!can_move(a, false)) continue;
      const uint64_t part = s_.areas[a].bytes / with_pus + 1;
      bool fits = true;
      for (NodeIndex node = 0; node < n_; ++node)
        fits = fits && (s_.nodes[node].pus == 0 || node == s_.areas[a].node || room_[node] >= part);
      if (!fits) continue;
      for (NodeIndex node = 0; node < n_; ++node)
        if (s_.nodes[node].pus != 0 && node != s_.areas[a].node) room_[node] -= part;
      plan->area[a] = {kSpreadOut, false};
    }
  }

  bool try_plans() {
    for (uint32_t i = 0; i < kMemoryActions; ++i) {
      const auto action = static_cast<MemoryAction>(i);
      MemoryPlan& plan = plan_of(action);
      reset(&plan);
      bool possible = action == MemoryAction::kNothing;
      switch (action) {
        case MemoryAction::kDataNow:
          bring_areas(&plan, Means::kNow, false);
          possible = moves_data(&plan);
          break;
        case MemoryAction::kNextTouch:
          bring_areas(&plan, Means::kNextTouch, false);
          possible = moves_data(&plan) && s_.costs->next_touch.touch_page_ns.known();
          break;
        case MemoryAction::kOneArea:
          plan_one_area(&plan);
          possible = moves_data(&plan);
          break;
        case MemoryAction::kThreads:
          assign(&plan, false);
          possible = moves_threads(&plan);
          break;
        case MemoryAction::kMixed:
          assign(&plan, true);
          bring_areas(&plan, Means::kCheaper, true);
          possible = moves_data(&plan) || (moves_threads(&plan) && allowed(MemoryAction::kThreads));
          break;
        case MemoryAction::kSpread:
          spread(&plan);
          possible = moves_data(&plan);
          break;
        default:
          break;
      }
      if (!cost_of_plan(s_, sharers_.data(), &scratch_, &plan)) return false;
      plan.cost.possible = possible && (allowed(action) || action == MemoryAction::kNothing);
      out_.costs[i] = plan.cost;
    }
    return true;
  }

  MemoryAction choose() const {
    const bool may_rest = allowed(MemoryAction::kNothing);
    int best = may_rest ? 0 : -1;
    double least = out_.costs[0].total_ns() * (1 - s_.margin);
    for (uint32_t i = 1; i < kMemoryActions; ++i) {
      const PlanCost& cost = out_.costs[i];
      if (!cost.possible || (best >= 0 && cost.total_ns() >= least)) continue;
      best = static_cast<int>(i);
      least = cost.total_ns();
    }
    return best < 0 ? MemoryAction::kNothing : static_cast<MemoryAction>(best);
  }

  void write_down(MemoryAction action) {
    out_.action = action;
    if (!out_.entities.resize(s_.n_entities) || !out_.areas.resize(s_.n_areas)) {
      out_.release();
      out_.action = MemoryAction::kNothing;
      out_.unknown = true;
      return;
    }
    for (uint32_t a = 0; a < s_.n_areas; ++a)
      out_.areas[a] = out_.unknown ? AreaPlan{s_.areas[a].node, false} : plan_of(action).area[a];
    for (uint32_t e = 0; e < s_.n_entities; ++e) {
      const NodeIndex node = out_.unknown ? s_.entities[e].node : plan_of(action).entity_node[e];
      out_.entities[e] = {node, action_of(e, node)};
    }
  }

  /// What the plan means for one entity.
  MemoryAction action_of(uint32_t e, NodeIndex node) {
    const UsingEntity& entity = s_.entities[e];
    uint32_t come = 0;
    bool marked = true;
    for (uint32_t u = entity.first_use; u < entity.first_use + entity.n_uses; ++u) {
      const AreaPlan& area = out_.areas[s_.uses[u].area];
      if (area.node == kSpreadOut) return MemoryAction::kSpread;
      if (area.node == s_.areas[s_.uses[u].area].node) continue;
      ++come;
      marked = marked && area.next_touch;
    }
    if (node != entity.node) return come == 0 ? MemoryAction::kThreads : MemoryAction::kMixed;
    if (come == 0) return MemoryAction::kNothing;
    return marked ? MemoryAction::kNextTouch : MemoryAction::kDataNow;
  }

  const MemorySituation& s_;
  MemoryDecision& out_;
  uint32_t n_;
  MemoryPlan plans_[kMemoryActions];
  PlanScratch scratch_;
  MappedArray<uint32_t> sharers_;  // per area: uses
  MappedArray<uint64_t> room_;     // per node: bytes that may still come
  MappedArray<uint32_t> seats_;    // per node: threads
  MappedArray<uint32_t> most_;     // per node: threads that it may have
  MappedArray<NodeIndex> common_;  // per area: see find_common_nodes()
  MappedArray<double> lead_;
  MappedArray<double> others_;
  MappedArray<uint32_t> rank_;   // uses of an entity, best first
  MappedArray<double> worth_;    // per use
  MappedArray<uint32_t> order_;  // per entity
  MappedArray<double> weight_;
};

}  // namespace

const char* memory_action_name(MemoryAction action) {
  static constexpr const char* kNames[kMemoryActions] = {
      "nothing", "threads", "data now", "next touch", "one area", "mixed", "spread"};
  return kNames[static_cast<unsigned>(action)];
}

void decide_memory(const MemorySituation& situation, MemoryDecision* decision) {
  Decider(situation, decision).run();
}

}  // namespace bosk::policies
