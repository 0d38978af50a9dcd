// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From raw objects to the machine: prune, fold, number, cut into levels.
//
// 1. Count the allowed PUs below every object; objects without any disappear, their NUMA nodes move up
//    to the nearest object that stays.
// 2. A chain of objects with the same PUs becomes one domain, which stands for all their kinds.
// 3. Domains are ordered breadth first (children adjacent) and depth first (PUs and indices left to
//    right), without recursion: a file may be deeply nested.
// 4. Each level is cut out of the tree; levels are ordered by who contains whom.
// 5. All tables go into one block: lay_out_machine.cpp.
#include "topology/machine_plan.h"

namespace bosk::topology {
namespace {

constexpr uint16_t bit(Kind kind) {
  return static_cast<uint16_t>(1u << static_cast<unsigned>(kind));
}

uint64_t add_bytes(uint64_t a, uint64_t b) {
  return a == kUnknownBytes || b == kUnknownBytes ? kUnknownBytes : a + b;
}

class Planner {
 public:
  Planner(const RawMachine& raw, const ProcessCpus* allowed, MachinePlan* plan, Error* error)
      : raw_(raw), allowed_(allowed), error_(error), plan_(*plan) {}

  bool run() {
    if (!prune() || !place_nodes() || !fold() || !order() || !complete() || !cut_levels()) {
      return false;
    }
    order_levels();
    return true;
  }

 private:
  // Step 1: prune.

  bool prune() {
    const uint32_t n = raw_.objects.size;
    if (n == 0) return error_->set("%s describes no machine at all", raw_.source);
    if (!plan_.pus_below.assign(n) || !plan_.cpu_seen.assign(kMaxOsIndex)) return false;
    uint32_t n_all = 0;
    for (uint32_t i = 0; i < n; i++) {
      const RawObject& object = raw_.objects[i];
      if (object.kind != Kind::kPu) continue;
      n_all++;
      if (object.os_index >= kMaxOsIndex) {
        return error_->set("%s has a PU numbered %u; the largest accepted is %u", raw_.source,
                           object.os_index, kMaxOsIndex - 1);
      }
      if (plan_.cpu_seen[object.os_index]++ != 0) {
        return error_->set("%s has PU %u twice", raw_.source, object.os_index);
      }
      if (allowed_ != nullptr && !allowed_->contains(object.os_index)) continue;
      plan_.pus_below[i] = 1;
    }
    // Parents come before their children, so one pass backwards sums whole subtrees.
    for (uint32_t i = n - 1; i > 0; i--)
      plan_.pus_below[raw_.objects[i].parent] += plan_.pus_below[i];
    plan_.n_pus = plan_.pus_below[0];
    plan_.n_excluded = n_all - plan_.n_pus;
    if (n_all == 0) return error_->set("%s has no PU", raw_.source);
    if (plan_.n_pus == 0) {
      return error_->set("none of the %u PUs of %s is in the affinity mask of this process", n_all,
                         raw_.source);
    }
    if (plan_.n_pus > kMaxPus) {
      return error_->set("%s has %u PUs; the most accepted is %u", raw_.source, plan_.n_pus,
                         kMaxPus);
    }
    return true;
  }

  bool place_nodes() {
    if (!plan_.node_kind.assign(raw_.objects.size) || !plan_.node_seen.assign(kMaxOsIndex))
      return false;
    if (raw_.nodes.size > kMaxNodes) {
      return error_->set("%s has %u NUMA nodes; the most accepted is %u", raw_.source,
                         raw_.nodes.size, kMaxNodes);
    }
    for (uint32_t i = 0; i < raw_.nodes.size; i++) {
      DraftNode node{raw_.nodes[i], i, raw_.nodes[i].object};
      if (node.raw.os_index >= kMaxOsIndex) {
        return error_->set("%s has a NUMA node numbered %u; the largest accepted is %u",
                           raw_.source, node.raw.os_index, kMaxOsIndex - 1);
      }
      if (plan_.node_seen[node.raw.os_index]++ != 0) {
        return error_->set("%s has NUMA node %u twice", raw_.source, node.raw.os_index);
      }
      if (plan_.pus_below[node.place] == 0) node.raw.has_pus = false;
      while (plan_.pus_below[node.place] == 0) node.place = raw_.objects[node.place].parent;
      if (!plan_.nodes.push(node)) return false;
    }
    return find_homes();
  }

  /// A CPU has one home node. hwloc does not say which: it gives a node without CPUs the PUs of the
  /// object it hangs on. So the home is the first node of the smallest object around a PU, and a node
  /// that is nobody's home (a second one on the same object, one around others) is memory only.
  bool find_homes() {
    const uint32_t n = raw_.objects.size;
    Array<uint32_t> candidate;  // per object: the first node that may be a home
    Array<uint32_t> homeless;   // per object: PUs inside without a home further inside
    if (!candidate.assign(n, 0xff) || !homeless.assign(n)) return false;
    for (uint32_t i = plan_.nodes.size; i-- > 0;) {
      if (plan_.nodes[i].raw.has_pus) candidate[plan_.nodes[i].place] = i;
      plan_.nodes[i].raw.has_pus = false;
    }
    for (uint32_t i = n; i-- > 0;) {
      if (raw_.objects[i].kind == Kind::kPu) homeless[i] = plan_.pus_below[i];
      if (candidate[i] != kNone && homeless[i] != 0) {
        plan_.nodes[candidate[i]].raw.has_pus = true;
        plan_.node_kind[i] = bit(Kind::kNode);
        homeless[i] = 0;
      }
      if (i != 0) homeless[raw_.objects[i].parent] += homeless[i];
    }
    return true;
  }

  // Step 2: fold.

  bool fold() {
    const uint32_t n = raw_.objects.size;
    Array<uint32_t> alive_children;
    if (!plan_.draft_of.assign(n, 0xff) || !alive_children.assign(n)) return false;
    for (uint32_t i = 1; i < n; i++) {
      if (plan_.pus_below[i] != 0) alive_children[raw_.objects[i].parent]++;
    }
    for (uint32_t i = 0; i < n; i++) {
      if (plan_.pus_below[i] == 0) continue;
      const RawObject& object = raw_.objects[i];
      uint32_t at = i == 0 ? kNone : plan_.draft_of[object.parent];
      if (i == 0 || alive_children[object.parent] > 1 || splits_one_pu_machine(object, at)) {
        if (!new_draft(at, plan_.pus_below[i])) return false;
        at = plan_.drafts.size - 1;
      }
      plan_.draft_of[i] = at;
      Draft& d = plan_.drafts[at];
      d.kinds |= bit(object.kind) | plan_.node_kind[i];
      if (object.kind == Kind::kPu) {
        d.is_pu = true;
        d.cpu_kind = object.cpu_kind;
      }
    }
    name_drafts();
    for (uint32_t i = 0; i < n; i++) {
      if (plan_.pus_below[i] == 0) continue;
      Draft& d = plan_.drafts[plan_.draft_of[i]];
      // Several objects of the naming kind in one chain (nested groups): the outermost counts.
      if (raw_.objects[i].kind == d.kind && d.os_index == kNone) {
        d.os_index = raw_.objects[i].os_index;
      }
    }
    for (DraftNode& node : plan_.nodes) node.place = plan_.draft_of[node.place];
    return true;
  }

  /// A machine with one PU is still a root and a PU, so that "the root" and "the leaf of a PU" are
  /// never the same domain: the core and the PU are split off, the rest is the root.
  bool splits_one_pu_machine(const RawObject& object, uint32_t draft_of_parent) const {
    return plan_.n_pus == 1 && draft_of_parent == 0 &&
           (object.kind == Kind::kCore || object.kind == Kind::kPu);
  }

  bool new_draft(uint32_t parent, uint32_t n_pus) {
    Draft d;
    d.parent = parent;
    d.n_pus = n_pus;
    if (parent != kNone) {
      d.rank = plan_.drafts[parent].n_children;
      d.depth = plan_.drafts[parent].depth + 1;
      if (d.depth > kMaxDepth) {
        return error_->set("%s is nested more than %u levels deep", raw_.source, kMaxDepth);
      }
    }
    if (!plan_.drafts.push(d)) return false;
    if (parent == kNone) return true;
    const uint32_t at = plan_.drafts.size - 1;
    Draft& p = plan_.drafts[parent];
    p.n_children++;
    if (p.first_child == kNone) {
      p.first_child = at;
    } else {
      plan_.drafts[p.last_child].next = at;
    }
    p.last_child = at;
    return true;
  }

  /// Names every draft, and gives the kinds that every machine must have to somebody.
  void name_drafts() {
    uint16_t present = 0;
    for (Draft& d : plan_.drafts) {
      // "Group" says only that there is something; whatever else is there says it better.
      const uint16_t named = static_cast<uint16_t>(d.kinds & ~bit(Kind::kGroup));
      if (named != 0) d.kinds = named;
      present |= d.kinds;
    }
    Draft& root = plan_.drafts[0];
    root.kinds |= bit(Kind::kMachine);
    if ((present & bit(Kind::kPackage)) == 0) root.kinds |= bit(Kind::kPackage);
    if ((present & bit(Kind::kNode)) == 0) root.kinds |= bit(Kind::kNode);
    for (Draft& d : plan_.drafts) {
      if (d.is_pu && (present & bit(Kind::kCore)) == 0) d.kinds |= bit(Kind::kCore);
      d.kind = d.is_pu ? Kind::kPu : static_cast<Kind>(__builtin_ctz(d.kinds));
    }
  }

  // Step 3: order.

  bool order() {
    if (!plan_.by_id.reserve(plan_.drafts.size) || !plan_.by_preorder.reserve(plan_.drafts.size))
      return false;
    for (uint32_t at = 0; at != kNone; at = next_in_preorder(at)) {
      if (!plan_.by_preorder.push(at)) return false;
    }
    if (!plan_.by_id.push(0)) return false;
    for (uint32_t head = 0; head < plan_.by_id.size; head++) {
      Draft& d = plan_.drafts[plan_.by_id[head]];
      d.id = head;
      uint32_t pu = d.first_pu;
      for (uint32_t child = d.first_child; child != kNone; child = plan_.drafts[child].next) {
        plan_.drafts[child].first_pu = pu;
        pu += plan_.drafts[child].n_pus;
        if (!plan_.by_id.push(child)) return false;
      }
    }
    uint32_t per_kind[kKinds] = {};
    for (const uint32_t at : plan_.by_preorder) {
      Draft& d = plan_.drafts[at];
      d.index = per_kind[static_cast<unsigned>(d.kind)]++;
    }
    return true;
  }

  uint32_t next_in_preorder(uint32_t at) const {
    if (plan_.drafts[at].first_child != kNone) return plan_.drafts[at].first_child;
    while (at != kNone && plan_.drafts[at].next == kNone) at = plan_.drafts[at].parent;
    return at == kNone ? kNone : plan_.drafts[at].next;
  }

  /// Heights, memory, NUMA nodes in order, kinds of cores.
  bool complete() {
    if (plan_.nodes.size == 0) {
      DraftNode made_up{};
      made_up.raw.bytes = kUnknownBytes;
      made_up.raw.has_pus = true;
      made_up.raw_index = kNone;
      if (!plan_.nodes.push(made_up)) return false;
    }
    for (const DraftNode& node : plan_.nodes) {
      Draft& d = plan_.drafts[node.place];
      d.n_nodes++;
      if (d.kind == Kind::kNode && d.os_index == kNone && node.raw.has_pus) {
        d.os_index = node.raw.os_index;
      }
      d.local_bytes = add_bytes(d.local_bytes, node.raw.bytes);
    }
    if (!number_nodes()) return false;
    if (!complete_kinds()) return false;
    for (Draft& d : plan_.drafts) d.total_bytes = d.local_bytes;
    for (uint32_t i = plan_.by_id.size; i-- > 1;) {
      const Draft& d = plan_.drafts[plan_.by_id[i]];
      Draft& p = plan_.drafts[d.parent];
      p.total_bytes = add_bytes(p.total_bytes, d.total_bytes);
      if (p.height < d.height + 1) p.height = d.height + 1;
      const bool first = d.rank + 1 == p.n_children;  // backwards: the last sibling comes first
      p.cpu_kind = first || p.cpu_kind == d.cpu_kind ? d.cpu_kind : int8_t{-1};
    }
    return true;
  }

  /// Left to right, those inside a domain before its own: memory around everything comes last.
  bool number_nodes() {
    Array<uint32_t> inside;  // per draft: nodes of its subtree
    if (!inside.assign(plan_.drafts.size)) return false;
    for (uint32_t i = plan_.by_id.size; i-- > 0;) {
      const Draft& d = plan_.drafts[plan_.by_id[i]];
      inside[plan_.by_id[i]] += d.n_nodes;
      if (d.parent != kNone) inside[d.parent] += inside[plan_.by_id[i]];
    }
    for (const uint32_t at : plan_.by_id) {
      Draft& d =
          plan_.drafts[at];  // first_node: so far the first of its subtree, set by its parent
      for (uint32_t child = d.first_child; child != kNone; child = plan_.drafts[child].next) {
        plan_.drafts[child].first_node = d.first_node;
        d.first_node += inside[child];
      }
    }
    return true;
  }

  bool complete_kinds() {
    for (const CpuKind& kind : raw_.cpu_kinds) {
      if (plan_.cpu_kinds.size == 100) break;  // Domain::cpu_kind has 8 bits
      if (!plan_.cpu_kinds.push(kind)) return false;
    }
    for (CpuKind& kind : plan_.cpu_kinds) kind.n_pus = 0;
    uint32_t untold = kNone;
    for (Draft& d : plan_.drafts) {
      if (!d.is_pu) continue;
      if (d.cpu_kind < 0 || static_cast<uint32_t>(d.cpu_kind) >= plan_.cpu_kinds.size) {
        if (untold == kNone) {
          untold = plan_.cpu_kinds.size;
          if (!plan_.cpu_kinds.push(CpuKind{-1, 0, 0, {}})) return false;
        }
        d.cpu_kind = static_cast<int8_t>(untold);
      }
      plan_.cpu_kinds[static_cast<uint32_t>(d.cpu_kind)].n_pus++;
    }
    return true;
  }

  // Step 4: levels.

  /// The domains of a level are those without a domain of the kind strictly inside them whose parent
  /// has one: a cut through the tree, so a partition of the PUs.
  bool cut_levels() {
    uint16_t present = 0;
    for (const Draft& d : plan_.drafts) present |= d.kinds;
    Array<uint16_t> below;  // kinds strictly inside
    if (!below.assign(plan_.drafts.size)) return false;
    for (uint32_t i = plan_.by_id.size; i-- > 1;) {
      const uint32_t at = plan_.by_id[i];
      below[plan_.drafts[at].parent] |= below[at] | plan_.drafts[at].kinds;
    }
    for (unsigned k = 0; k < kKinds; k++) {
      const uint16_t kind = static_cast<uint16_t>(1u << k);
      if ((present & kind) == 0) continue;
      DraftLevel& level = plan_.levels[plan_.n_levels++];
      level.kind = static_cast<Kind>(k);
      uint32_t end = 0;  // PUs before this one are in a domain of the level already
      for (const uint32_t at : plan_.by_preorder) {
        const Draft& d = plan_.drafts[at];
        if (d.first_pu < end || (below[at] & kind) != 0) continue;
        if (!level.drafts.push(at)) return false;
        end = d.first_pu + d.n_pus;
      }
      plan_.n_level_ids += level.drafts.size;
    }
    return true;
  }

  /// Outer kinds first: A comes before B if a domain of A has a domain of B strictly inside it. Nested
  /// nodes or groups can make a circle; the order of Kind decides then, and among unrelated kinds.
  void order_levels() {
    uint16_t inside[kKinds] = {};
    for (const Draft& d : plan_.drafts) {
      for (uint32_t p = d.parent; p != kNone; p = plan_.drafts[p].parent) {
        for (unsigned k = 0; k < kKinds; k++) {
          if (((plan_.drafts[p].kinds >> k) & 1) != 0) inside[k] |= d.kinds;
        }
      }
    }
    uint16_t left = 0;
    for (uint32_t i = 0; i < plan_.n_levels; i++) left |= bit(plan_.levels[i].kind);
    left = static_cast<uint16_t>(left & ~bit(Kind::kPu));
    for (uint32_t i = 0; left != 0; i++) {
      const unsigned kind = outermost_of(left, inside);
      left = static_cast<uint16_t>(left & ~(1u << kind));
      plan_.level_order[i] = level_at(static_cast<Kind>(kind));
    }
    plan_.level_order[plan_.n_levels - 1] = level_at(Kind::kPu);
  }

  static unsigned outermost_of(uint16_t left, const uint16_t* inside) {
    for (unsigned k = 0; k < kKinds; k++) {
      if (((left >> k) & 1) == 0) continue;
      bool contained = false;
      for (unsigned other = 0; other < kKinds; other++) {
        contained =
            contained || (other != k && ((left >> other) & 1) != 0 &&
                          ((inside[other] >> k) & 1) != 0 && ((inside[k] >> other) & 1) == 0);
      }
      if (!contained) return k;
    }
    return static_cast<unsigned>(__builtin_ctz(left));  // a circle of three or more
  }

  uint32_t level_at(Kind kind) const {
    uint32_t i = 0;
    while (plan_.levels[i].kind != kind) i++;
    return i;
  }

  const RawMachine& raw_;
  const ProcessCpus* allowed_;
  Error* error_;
  MachinePlan& plan_;
};

}  // namespace

bool plan_machine(const RawMachine& raw, const ProcessCpus* allowed, MachinePlan* plan,
                  Error* error) {
  return Planner(raw, allowed, plan, error).run();
}

Machine* build_machine(const RawMachine& raw, const ProcessCpus* allowed, Error* error) {
  error->text[0] = '\0';
  MachinePlan plan;
  if (plan_machine(raw, allowed, &plan, error)) return lay_out_machine(raw, &plan, error);
  if (error->text[0] == '\0') error->set("out of memory while building the machine tree");
  return nullptr;
}

}  // namespace bosk::topology
