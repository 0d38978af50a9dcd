// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places the threads of a bubble where they were told to go.
#include "policies/decided.h"

namespace bosk::policies {
namespace {

using sched::EntityKind;
using sched::TreeEntity;
using topology::Domain;
using topology::Machine;

/// In WorkScratch::fate, which whoever checks the answer fills anew.
enum Mind : uint8_t {
  kOne,     ///< all that is in it goes to its `area`
  kTorn,    ///< to several domains
  kPlaced,  ///< it has been answered, or what is around it
};

class Decided {
 public:
  Decided(const Machine& machine, WorkScratch& scratch, uint32_t domain)
      : machine_(machine), s_(scratch), scope_(machine.domain_array[domain]) {}

  /// Members come after their bubble. False: somebody has been told nothing, or it is no case for this.
  bool add_up() {
    for (uint32_t i = s_.entities.size(); i-- > 0;) {
      const EntityView& e = s_.entities[i];
      if (e.kind == EntityKind::kThread) {
        if (!add(i, told(*s_.who[i]))) return false;
      } else {
        if (e.relation != sched::Relation::kNone || e.ghosts != 0) return false;
        add_those_outside(i);
      }
      if (e.parent == kNone || s_.area[i] == kNone) continue;
      if (s_.fate[i] == kTorn) s_.fate[e.parent] = kTorn;
      add(e.parent, s_.area[i]);
    }
    return true;
  }

  /// What is of one mind stays whole, as the policy had it; what is not opens. False: out of memory.
  bool answer() {
    for (uint32_t i = 0; i < s_.entities.size(); ++i) {
      const uint32_t parent = s_.entities[i].parent;
      const bool carried = parent != kNone && s_.fate[parent] == kPlaced;
      if (!carried && (s_.fate[i] == kTorn || s_.area[i] == kNone)) continue;
      if (!carried && !s_.answer.add({i, 0, 0, s_.area[i]})) return false;
      s_.fate[i] = kPlaced;
    }
    return true;
  }

 private:
  /// Where it goes when it becomes ready; it has become so, and is there as far as anybody knows, or goes on where it ran.
  static uint32_t told(const TreeEntity& thread) {
    const uint32_t to = thread.figures.wake_domain.load(std::memory_order_relaxed);
    return to != kNone ? to : thread.figures.last_domain.load(std::memory_order_relaxed);
  }

  /// Blocked threads of the bubble.
  void add_those_outside(uint32_t i) {
    auto& bubble = static_cast<sched::NestedBubble&>(*s_.who[i]);
    base::SpinGuard guard(bubble.lock);
    for (const TreeEntity* m = bubble.first_member; m != nullptr; m = m->next_member)
      if (m->kind == EntityKind::kThread && m->whereabouts != sched::Whereabouts::kHeld)
        add(i, m->figures.wake_domain.load(std::memory_order_relaxed));
  }

  /// False: it is not in reach.
  bool add(uint32_t i, uint32_t domain) {
    if (domain >= machine_.n_domains) return false;
    const Domain& to = machine_.domain_array[domain];
    if (to.depth < scope_.depth || !scope_.contains_pu(to.first_pu)) return false;
    uint32_t& area = s_.area[i];
    if (area != kNone && area != domain) {
      s_.fate[i] = kTorn;
      area = machine_.common_ancestor(machine_.domain_array[area], to).id;
    } else {
      area = domain;
    }
    return true;
  }

  const Machine& machine_;
  WorkScratch& s_;
  const Domain& scope_;
};

}  // namespace

bool answer_as_decided(const Machine& machine, WorkScratch& s, uint32_t domain) {
  const auto clear = [&s](uint32_t i) {
    s.area[i] = kNone;
    s.fate[i] = kOne;
  };
  for (uint32_t i = 0; i < s.entities.size(); ++i) clear(i);
  Decided decided(machine, s, domain);
  const bool answers = take_note(static_cast<sched::NestedBubble&>(*s.who[0]), kDecided) &&
                       decided.add_up() && decided.answer();
  if (!answers) s.answer.clear();
  for (uint32_t i = 0; i < s.entities.size(); ++i) {
    if (!answers) clear(i);
    // They are placed now, here or by the policy, and what they were told holds no longer.
    std::atomic<uint32_t>& told = s.who[i]->figures.wake_domain;
    if (told.load(std::memory_order_relaxed) != kNone) told.store(kNone, std::memory_order_relaxed);
  }
  return answers;
}

}  // namespace bosk::policies
