// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes a planned machine down: every table in one block of memory, so that it is one malloc and one
// free, and neighbours in the tree are neighbours in the cache.
#include <stdlib.h>
#include <string.h>

#include "topology/machine_plan.h"

namespace bosk::topology {
namespace {

/// Hands out pieces of the block; a first pass, without a block, only adds up their sizes.
class Arena {
 public:
  explicit Arena(char* base) : base_(base) {}

  template <typename T>
  T* take(uint64_t n) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    T* piece = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += n * sizeof(T);
    return piece;
  }
  size_t used() const { return used_; }

 private:
  char* base_;
  size_t used_ = 0;
};

struct Pieces {
  Machine* machine;
  Domain* domains;
  Level* levels;
  NumaNode* nodes;
  CpuKind* cpu_kinds;
  uint32_t* level_ids;
  uint32_t* level_pus;
  uint32_t* pu_of_os;
  uint32_t* node_of_os;
  uint32_t* node_of_pu;
  uint32_t* distances;
  NodeLink* links;  // null: none told
  char* source;
};

class Writer {
 public:
  Writer(const RawMachine& raw, MachinePlan* plan, Error* error)
      : raw_(raw), error_(error), plan_(*plan) {}

  Machine* run() {
    for (uint32_t i = 0; i < raw_.objects.size; i++) {
      const RawObject& object = raw_.objects[i];
      if (object.kind != Kind::kPu || plan_.pus_below[i] == 0) continue;
      if (object.os_index >= plan_.n_os_cpus) plan_.n_os_cpus = object.os_index + 1;
    }
    for (const DraftNode& node : plan_.nodes) {
      if (node.raw.os_index >= plan_.n_os_nodes) plan_.n_os_nodes = node.raw.os_index + 1;
    }
    Arena measure(nullptr);
    carve(&measure);
    char* block = static_cast<char*>(calloc(1, measure.used()));
    if (block == nullptr) {
      error_->set("out of memory while building the machine tree (%zu bytes)", measure.used());
      return nullptr;
    }
    Arena arena(block);
    const Pieces p = carve(&arena);
    memcpy(p.source, raw_.source, strlen(raw_.source) + 1);
    fill_domains(p);
    fill_levels(p);
    fill_nodes(p);
    for (const bool with_pus : {false, true}) find_nearest_nodes(p, with_pus);
    fill_distances(p);
    fill_machine(p);
    return p.machine;
  }

 private:
  Pieces carve(Arena* arena) const {
    Pieces p;
    p.machine = arena->take<Machine>(1);
    p.domains = arena->take<Domain>(plan_.drafts.size);
    p.levels = arena->take<Level>(plan_.n_levels);
    p.nodes = arena->take<NumaNode>(plan_.nodes.size);
    p.cpu_kinds = arena->take<CpuKind>(plan_.cpu_kinds.size);
    p.level_ids = arena->take<uint32_t>(plan_.n_level_ids);
    p.level_pus = arena->take<uint32_t>(uint64_t{plan_.n_levels} * plan_.n_pus);
    p.pu_of_os = arena->take<uint32_t>(plan_.n_os_cpus);
    p.node_of_os = arena->take<uint32_t>(plan_.n_os_nodes);
    p.node_of_pu = arena->take<uint32_t>(plan_.n_pus);
    p.distances = arena->take<uint32_t>(uint64_t{plan_.nodes.size} * plan_.nodes.size);
    p.links = has_links() ? arena->take<NodeLink>(uint64_t{plan_.nodes.size} * plan_.nodes.size)
                          : nullptr;
    p.source = arena->take<char>(strlen(raw_.source) + 1);
    return p;
  }

  void fill_domains(const Pieces& p) const {
    memset(p.pu_of_os, 0xff, plan_.n_os_cpus * sizeof(uint32_t));
    for (const Draft& d : plan_.drafts) {
      Domain& out = p.domains[d.id];
      out.kind = d.kind;
      out.depth = static_cast<uint8_t>(d.depth);
      out.height = static_cast<uint8_t>(d.height);
      out.cpu_kind = d.cpu_kind;
      out.kinds = d.kinds;
      out.id = d.id;
      out.index = d.index;
      out.rank = d.rank;
      out.os_index = d.os_index;
      out.first_pu = d.first_pu;
      out.last_pu = d.first_pu + d.n_pus - 1;
      out.n_children = d.n_children;
      out.first_node = d.first_node;
      out.n_nodes = d.n_nodes;
      out.parent = d.parent == kNone ? nullptr : p.domains + plan_.drafts[d.parent].id;
      out.first_child =
          d.first_child == kNone ? nullptr : p.domains + plan_.drafts[d.first_child].id;
      out.local_bytes = d.local_bytes;
      out.total_bytes = d.total_bytes;
      if (d.is_pu) p.pu_of_os[d.os_index] = d.first_pu;
    }
  }

  void fill_levels(const Pieces& p) const {
    uint32_t* ids = p.level_ids;
    for (uint32_t i = 0; i < plan_.n_levels; i++) {
      const DraftLevel& level = plan_.levels[plan_.level_order[i]];
      uint32_t* of_pu = p.level_pus + uint64_t{i} * plan_.n_pus;
      bool kept = false;
      for (uint32_t j = 0; j < level.drafts.size; j++) {
        const Draft& d = plan_.drafts[level.drafts[j]];
        ids[j] = d.id;
        for (uint32_t pu = d.first_pu; pu < d.first_pu + d.n_pus; pu++) of_pu[pu] = d.id;
      }
      for (const Draft& d : plan_.drafts) kept = kept || d.kind == level.kind;
      p.levels[i] = Level{level.kind, kept, level.drafts.size, ids, of_pu};
      ids += level.drafts.size;
    }
  }

  void fill_nodes(const Pieces& p) {
    Array<uint32_t>& next = plan_.draft_of;  // no longer needed, and at least as long as the drafts
    for (uint32_t i = 0; i < plan_.drafts.size; i++) next[i] = plan_.drafts[i].first_node;
    memset(p.node_of_os, 0xff, plan_.n_os_nodes * sizeof(uint32_t));
    for (DraftNode& node : plan_.nodes) {
      const uint32_t at = next[node.place]++;
      NumaNode& out = p.nodes[at];
      out.os_index = node.raw.os_index;
      out.domain = plan_.drafts[node.place].id;
      out.bytes = node.raw.bytes;
      out.has_pus = node.raw.has_pus;
      out.assumed = node.raw_index == kNone;
      memcpy(out.subtype, node.raw.subtype, sizeof out.subtype);
      out.bandwidth = node.raw.bandwidth;
      out.subtype[sizeof out.subtype - 1] = '\0';
      p.node_of_os[out.os_index] = at;
      node.place = at;
    }
  }

  /// Gives every PU the node attached to the smallest domain around it; a PU that no node covers gets
  /// the leftmost node of the smallest domain around it that has one anywhere inside. Called for
  /// memory-only nodes first, so that any node with PUs overwrites them.
  void find_nearest_nodes(const Pieces& p, bool with_pus) {
    Array<uint32_t>& inside = plan_.draft_of;  // per draft: its own node, else the leftmost inside
    Array<uint32_t>& own = plan_.pus_below;    // per draft: the first node attached to it
    for (uint32_t i = 0; i < plan_.drafts.size; i++) inside[i] = own[i] = kNone;
    for (uint32_t i = plan_.by_preorder.size; i-- > 0;) {
      const uint32_t at = plan_.by_preorder[i];
      const Draft& d = plan_.drafts[at];
      for (uint32_t j = d.n_nodes; j-- > 0;) {
        if (p.nodes[d.first_node + j].has_pus == with_pus) own[at] = d.first_node + j;
      }
      if (own[at] != kNone) inside[at] = own[at];
      if (inside[at] != kNone && d.parent != kNone) inside[d.parent] = inside[at];
    }
    for (const Array<uint32_t>* table : {&inside, &own}) {
      for (const uint32_t at : plan_.by_preorder) {
        const Draft& d = plan_.drafts[at];
        if ((*table)[at] == kNone) continue;
        for (uint32_t pu = d.first_pu; pu < d.first_pu + d.n_pus; pu++) {
          p.node_of_pu[pu] = (*table)[at];
        }
      }
    }
  }

  /// A node that was made up, or one that was left out, has none.
  bool has_links() const {
    const uint32_t n = plan_.nodes.size;
    return raw_.links.size == n * n && raw_.nodes.size == n;
  }

  void fill_distances(const Pieces& p) {
    const uint32_t n = plan_.nodes.size;
    const bool told = raw_.distances.size == n * n && raw_.nodes.size == n;
    for (const DraftNode& from : plan_.nodes) {
      for (const DraftNode& to : plan_.nodes) {
        uint32_t value = told ? raw_.distances[from.raw_index * n + to.raw_index] : 0;
        if (value == 0) {
          value = from.place == to.place ? kLocalDistance : kRemoteDistance;
          plan_.distances_assumed = true;
        }
        p.distances[uint64_t{from.place} * n + to.place] = value;
        if (p.links != nullptr) {
          p.links[uint64_t{from.place} * n + to.place] =
              raw_.links[from.raw_index * n + to.raw_index];
        }
      }
    }
  }

  void fill_machine(const Pieces& p) const {
    Machine& m = *p.machine;
    m.n_pus = plan_.n_pus;
    m.n_domains = plan_.drafts.size;
    m.n_nodes = plan_.nodes.size;
    m.n_levels = plan_.n_levels;
    m.n_cpu_kinds = plan_.cpu_kinds.size;
    m.n_excluded = plan_.n_excluded;
    m.n_os_cpus = plan_.n_os_cpus;
    m.n_os_nodes = plan_.n_os_nodes;
    m.this_system = raw_.this_system;
    m.distances_assumed = plan_.distances_assumed;
    m.n_depths = static_cast<uint8_t>(plan_.drafts[0].height + 1);
    m.reader = raw_.reader;
    m.source = p.source;
    memcpy(p.cpu_kinds, plan_.cpu_kinds.data, plan_.cpu_kinds.size * sizeof(CpuKind));
    m.domain_array = p.domains;
    m.level_array = p.levels;
    m.node_array = p.nodes;
    m.cpu_kind_array = p.cpu_kinds;
    m.pu_of_os_array = p.pu_of_os;
    m.node_of_os_array = p.node_of_os;
    m.node_of_pu_array = p.node_of_pu;
    m.distance_array = p.distances;
    m.link_array = p.links;
    memset(m.level_of_kind, -1, sizeof m.level_of_kind);
    for (uint32_t i = 0; i < plan_.n_levels; i++) {
      m.level_of_kind[static_cast<unsigned>(p.levels[i].kind)] = static_cast<int8_t>(i);
    }
  }

  const RawMachine& raw_;
  Error* error_;
  MachinePlan& plan_;
};

}  // namespace

Machine* lay_out_machine(const RawMachine& raw, MachinePlan* plan, Error* error) {
  return Writer(raw, plan, error).run();
}

}  // namespace bosk::topology
