// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts the question together, and takes the answer apart.
#include "policies/memory/data_plan.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/syscalls.h"
#include "memory/next_touch/next_touch.h"
#include "memory/page_nodes.h"

namespace bosk::policies {
namespace {

using base::MappedArray;
using memory::AreaInfo;
using memory::AreaTable;
using memory::NodeIndex;

/// An area, its parts and whether it may move.
struct Asked {
  AreaInfo area;
  uint32_t first_part;
  uint32_t n_parts;
  bool movable;
  float known = 0;    ///< shares of its users
  float unknown = 0;  ///< of those of whom nobody knows where they are
};

/// Of an area's users that many may be nobody knows where, and it is still brought to the others.
constexpr float kMostUnknown = .25F;

/// The program's own memory, for which it has said where it lies: by mbind(2), or omp_alloc() by a partition.
bool has_policy_of_its_own(const AreaInfo& area) {
  if (area.is_own()) return false;
  int mode = MPOL_DEFAULT;
  const long refused = base::raw_syscall(SYS_get_mempolicy, base::address_of(&mode), 0, 0,
                                         static_cast<long>(area.begin), MPOL_F_ADDR);
  return refused == 0 && mode != MPOL_DEFAULT && mode != MPOL_LOCAL;
}

class Question {
 public:
  Question(const MemoryQuestion& question, DataPlan* plan)
      : q_(question), plan_(*plan), n_(question.areas->nodes().count()) {}
  ~Question() {
    order_.release();
    number_.release();
    asked_.release();
    parts_.release();
    entities_.release();
    uses_.release();
    bytes_.release();
    decision_.release();
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  bool run() {
    if (!find_areas() || !find_uses()) return false;
    MemorySituation situation{};
    situation.costs = q_.costs;
    situation.entities = entities_.data();
    situation.n_entities = entities_.size();
    situation.areas = parts_.data();
    situation.n_areas = parts_.size();
    situation.uses = uses_.data();
    situation.n_uses = uses_.size();
    situation.nodes = q_.nodes;
    situation.rounds = rounds_;
    situation.allowed = q_.allowed;
    decide_memory(situation, &decision_);
    plan_.action = decision_.action;
    plan_.unknown = decision_.unknown;
    plan_.rounds = rounds_;
    std::copy_n(decision_.costs, kMemoryActions, plan_.costs);
    for (uint32_t a = 0; a < asked_.size(); ++a)
      if (!take_answer(asked_[a])) return false;
    return true;
  }

 private:
  const memory::AreaUse& use(uint32_t i) const { return q_.uses[i].use; }

  /// Areas in order of their serials, each once.
  bool find_areas() {
    if (!order_.resize(q_.n_uses) || !number_.resize(q_.n_uses) || !bytes_.resize(n_)) return false;
    for (uint32_t i = 0; i < q_.n_uses; ++i) order_[i] = i;
    std::sort(order_.data(), order_.data() + q_.n_uses,
              [this](uint32_t a, uint32_t b) { return use(a).area.serial < use(b).area.serial; });
    uint64_t last = 0;
    for (uint32_t k = 0; k < q_.n_uses; ++k) {
      const uint32_t i = order_[k];
      if (use(i).area.serial != last && !add_area(use(i).area)) return false;
      last = use(i).area.serial;
      number_[i] = asked_.size() - 1;
    }
    for (uint32_t u = 0; u < q_.n_users; ++u) {
      const MemoryUser& user = q_.users[u];
      for (uint32_t i = user.first_use; i < user.first_use + user.n_uses; ++i)
        (user.node < n_ ? asked_[number_[i]].known : asked_[number_[i]].unknown) +=
            q_.uses[i].share;
    }
    for (Asked* a = asked_.data(); a != asked_.data() + asked_.size(); ++a)
      if (a->unknown > kMostUnknown * (a->known + a->unknown)) a->movable = false;
    for (uint32_t a = 0; a < asked_.size(); ++a)
      for (uint32_t p = 0; p < asked_[a].n_parts; ++p)
        parts_[asked_[a].first_part + p].movable = asked_[a].movable;
    return true;
  }

  bool add_area(const AreaInfo& seen) {
    Asked asked{seen, parts_.size(), 0, true};
    // Where nothing is known, or it has gone, there are no parts, and nobody asks about it.
    if (q_.areas->look_up(seen.begin, &asked.area, bytes_.data()) &&
        asked.area.serial == seen.serial && !memory::is_coming(asked.area)) {
      asked.movable = !asked.area.is_spread_on_purpose() && !has_policy_of_its_own(asked.area);
      const bool huge = asked.area.huge_page != 0;
      // A touch brings nothing to nodes that the kernel does not have.
      const bool markable = !huge && q_.areas->nodes().real();
      for (NodeIndex node = 0; node < n_; ++node) {
        if (bytes_[node] == 0) continue;
        const auto pages = huge ? memory::PageKind::kHuge : memory::PageKind::kBase;
        if (!parts_.push({node, bytes_[node], true, markable, pages})) return false;
        ++asked.n_parts;
      }
    }
    return asked_.push(asked);
  }

  bool find_uses() {
    uint32_t most = 1;
    for (uint32_t i = 0; i < q_.n_uses; ++i) most = std::max(most, rounds_of(use(i).times));
    rounds_ = most;
    for (uint32_t u = 0; u < q_.n_users; ++u) {
      const MemoryUser& user = q_.users[u];
      if (user.node >= n_ || user.threads == 0) continue;
      UsingEntity entity{user.node, user.threads, uses_.size(), 0};
      for (uint32_t i = user.first_use; i < user.first_use + user.n_uses; ++i) {
        const float each = static_cast<float>(rounds_of(use(i).times)) / static_cast<float>(most);
        const Asked& asked = asked_[number_[i]];
        for (uint32_t p = asked.first_part; p < asked.first_part + asked.n_parts; ++p) {
          const float reads = (use(i).use & memory::kReads) != 0 ? each : 0;
          const float writes = (use(i).use & memory::kWrites) != 0 ? each : 0;
          if (!uses_.push({p, reads, writes, q_.uses[i].share})) return false;
          ++entity.n_uses;
        }
      }
      if (entity.n_uses != 0 && !entities_.push(entity)) return false;
    }
    return true;
  }

  bool take_answer(const Asked& asked) {
    AreaMove move{asked.area, memory::kNoNode, false, plan_.targets.size()};
    bool moves = false;
    bool all_to_one = true;
    for (uint32_t p = asked.first_part; p < asked.first_part + asked.n_parts; ++p) {
      const AreaPlan& answer = decision_.areas[p];
      moves = moves || answer.node != parts_[p].node;
      move.next_touch = move.next_touch || answer.next_touch;
      all_to_one = all_to_one && answer.node == decision_.areas[asked.first_part].node;
    }
    if (!moves) return true;
    if (all_to_one) {
      move.to = decision_.areas[asked.first_part].node;
    } else {
      for (NodeIndex node = 0; node < n_; ++node)
        if (!plan_.targets.push(memory::kNoNode)) return false;
      for (uint32_t p = asked.first_part; p < asked.first_part + asked.n_parts; ++p) {
        const NodeIndex to = decision_.areas[p].node;
        if (to == kSpreadOut) move.to = kSpreadOut;
        if (to < n_) plan_.targets[move.first_target + parts_[p].node] = to;
      }
    }
    return plan_.moves.push(move);
  }

  const MemoryQuestion& q_;
  DataPlan& plan_;
  const uint32_t n_;
  double rounds_ = 1;
  MappedArray<uint32_t> order_;
  MappedArray<uint32_t> number_;  // per use: which of asked_
  MappedArray<Asked> asked_;
  MappedArray<uint64_t> bytes_;  // per node, of one area
  MappedArray<UsedArea> parts_;
  MappedArray<UsingEntity> entities_;
  MappedArray<AreaUse> uses_;
  MemoryDecision decision_;
};

/// Page by page, over all nodes that have PUs.
int spread_out(AreaTable& areas, const AreaInfo& area, memory::Moved* moved) {
  MappedArray<NodeIndex> nodes;
  const topology::Machine& machine = areas.nodes().machine();
  int error = -1;
  bool enough = true;
  for (NodeIndex node = 0; node < machine.n_nodes; ++node) {
    bool has_pus = false;
    for (uint32_t pu = 0; pu < machine.n_pus && !has_pus; ++pu)
      has_pus = machine.node_of_pu(pu) == node;
    if (has_pus && areas.nodes().usable(node)) enough = enough && nodes.push(node);
  }
  if (enough && !nodes.empty())
    error = memory::distribute_area(areas, area, nodes.data(), nodes.size(), memory::page_size(),
                                    moved);
  nodes.release();
  return error;
}

}  // namespace

uint32_t data_actions(base::MemoryMoves moves) {
  constexpr uint32_t kNow = action_bit(MemoryAction::kDataNow);
  constexpr uint32_t kLater = action_bit(MemoryAction::kNextTouch);
  switch (moves) {
    case base::MemoryMoves::kThreads:
      return 0;
    case base::MemoryMoves::kData:
      return kNow;
    case base::MemoryMoves::kNextTouch:
      return kLater;
    case base::MemoryMoves::kMixed:
      return kNow | kLater;
    case base::MemoryMoves::kAuto:
      break;
  }
  return kAnyAction & ~action_bit(MemoryAction::kThreads) & ~action_bit(MemoryAction::kMixed);
}

bool plan_data(const MemoryQuestion& question, DataPlan* plan) {
  return Question(question, plan).run();
}

void move_data(AreaTable& areas, const DataPlan& plan, DataMoved* moved) {
  for (uint32_t i = 0; i < plan.moves.size(); ++i) {
    const AreaMove& move = plan.moves[i];
    AreaInfo area;
    if (!areas.look_up(move.area.begin, &area) || area.serial != move.area.serial) continue;
    bool done = true;
    if (move.next_touch) {
      // Whoever attaches or registers memory has agreed to what marks mean: docs/next-touch.md.
      done = memory::mark_area(areas, area, area.begin, area.bytes(), {}) == memory::kNextTouchOk;
      moved->marked += done;
    } else {
      if (move.to == kSpreadOut)
        done = spread_out(areas, area, &moved->pages) == 0;
      else if (move.to != memory::kNoNode)
        memory::migrate_area(areas, area, move.to, &moved->pages);
      else
        done = memory::migrate_parts(areas, area, &plan.targets[move.first_target],
                                     &moved->pages) == 0;
      moved->areas += done;
    }
    moved->stayed += !done;
  }
}

}  // namespace bosk::policies
