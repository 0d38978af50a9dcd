// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the topology tests share: machines that free themselves, and a check of everything that must
// hold for any machine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "topology/source.h"

namespace bosk::topology {

struct MachineDeleter {
  void operator()(Machine* machine) const { free_machine(machine); }
};
using MachinePtr = std::unique_ptr<Machine, MachineDeleter>;

/// Loads, and expects success; `error` is in the failure's text.
inline MachinePtr load(MachineSource::From from, const std::string& text) {
  MachineSource source;
  source.from = from;
  source.text = text.c_str();
  Error error;
  MachinePtr machine(load_machine(source, &error));
  EXPECT_NE(machine, nullptr) << error.text;
  return machine;
}

inline MachinePtr synthetic(const std::string& text) {
  return load(MachineSource::From::kSynthetic, text);
}

inline std::string data_path(const std::string& name) {
  return std::string(BOSK_TEST_DATA) + "/topology/" + name;
}

inline MachinePtr xml(const std::string& name) {
  return load(MachineSource::From::kXmlFile, data_path(name));
}

/// The text of the error that a bad source gives; "" if it loads.
inline std::string error_of(MachineSource::From from, const std::string& text) {
  MachineSource source;
  source.from = from;
  source.text = text.c_str();
  Error error;
  MachinePtr machine(load_machine(source, &error));
  return machine == nullptr ? error.text : "";
}

inline uint32_t count_kind(const Machine& m, Kind kind) {
  uint32_t n = 0;
  for (const Domain& d : m.domains()) n += d.kind == kind ? 1 : 0;
  return n;
}

/// The first rule of machine.h that the machine breaks, or "" if it keeps all. Everything is computed
/// again from parent links and PU ranges alone.
inline std::string broken_rule(const Machine& m) {
  const auto all = m.domains();
  if (m.n_pus == 0 || all.empty()) return "empty machine";
  const Domain& root = m.root();
  if (root.kind != Kind::kMachine || root.parent != nullptr || root.depth != 0) return "root";
  if (root.first_pu != 0 || root.last_pu != m.n_pus - 1) return "root's PUs";
  if (m.n_depths != root.height + 1) return "n_depths";

  uint32_t n_leaves = 0;
  std::vector<uint32_t> seen_index(kKinds, 0);
  for (uint32_t id = 0; id < m.n_domains; id++) {
    const Domain& d = all[id];
    if (d.id != id) return "id";
    if (!d.stands_for(d.kind)) return "a domain does not stand for its own name";
    if ((d.kind == Kind::kMachine) != (id == 0)) return "machine that is not the root";
    if ((d.kind == Kind::kPu) != d.is_pu()) return "PU with children, or leaf that is not a PU";
    if (d.n_children == 1 && !(id == 0 && m.n_pus == 1)) return "arity 1";
    if (id > 0 && all[id - 1].depth > d.depth) return "not breadth first";
    uint32_t next_pu = d.first_pu;
    uint32_t height = 0;
    uint32_t rank = 0;
    uint64_t bytes = d.local_bytes;
    for (const Domain& child : d.children()) {
      if (child.parent != &d || child.depth != d.depth + 1 || child.rank != rank++) return "child";
      if (child.first_pu != next_pu) return "PUs of siblings are not adjacent";
      next_pu = child.last_pu + 1;
      height = std::max(height, child.height + 1u);
      bytes = bytes == kUnknownBytes || child.total_bytes == kUnknownBytes
                  ? kUnknownBytes
                  : bytes + child.total_bytes;
    }
    if (!d.is_pu() && next_pu != d.last_pu + 1) return "children do not cover their parent";
    if (d.is_pu() && d.first_pu != d.last_pu) return "PU with several numbers";
    if (d.height != height) return "height";
    if (d.total_bytes != bytes) return "total_bytes";
    n_leaves += d.is_pu() ? 1 : 0;
    // Of one kind, further left means smaller index.
    uint32_t before = 0;
    for (const Domain& other : all) {
      if (m.n_domains > 400) break;  // quadratic
      if (other.kind == d.kind && other.id != d.id &&
          (other.first_pu < d.first_pu ||
           (other.first_pu == d.first_pu && other.depth < d.depth))) {
        before++;
      }
    }
    if (m.n_domains <= 400 && d.index != before) return "index";
  }
  if (n_leaves != m.n_pus) return "number of leaves";

  for (uint32_t pu = 0; pu < m.n_pus; pu++) {
    if (!m.pu(pu).is_pu() || m.pu(pu).first_pu != pu) return "pu()";
    if (m.pu_of_os(m.os_of_pu(pu)) != pu) return "pu_of_os";
  }
  uint32_t mapped = 0;
  for (uint32_t cpu = 0; cpu < m.n_os_cpus + 70; cpu++) mapped += m.pu_of_os(cpu) != kNone ? 1 : 0;
  if (mapped != m.n_pus || m.pu_of_os(kNone) != kNone) return "pu_of_os has strangers";

  // Levels are partitions into domains without the kind strictly inside, as large as possible.
  for (const Level& level : m.levels()) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < level.n_domains; i++) {
      const Domain& d = all[level.domains[i]];
      if (d.first_pu != next) return "level is not a partition";
      next = d.last_pu + 1;
      for (uint32_t pu = d.first_pu; pu <= d.last_pu; pu++) {
        if (m.domain_of_pu(pu, level.kind) != &d) return "domain_of_pu";
      }
      bool parent_splits = d.parent == nullptr;
      for (const Domain& other : all) {
        if (m.n_domains > 400) break;
        if (!other.stands_for(level.kind)) continue;
        for (const Domain* p = other.parent; p != nullptr; p = p->parent) {
          if (p == &d) return "a level's domain has the kind inside";
          if (p == d.parent) parent_splits = true;
        }
      }
      if (m.n_domains <= 400 && !parent_splits) return "a level's domain could be larger";
    }
    if (next != m.n_pus) return "level does not reach the last PU";
    if (m.level(level.kind) != &level) return "level()";
    if (m.find_level(kind_name(level.kind), nullptr) != &level) return "find_level";
    if (level.kept != (count_kind(m, level.kind) != 0)) return "kept";
  }
  for (const Kind kind : {Kind::kMachine, Kind::kPackage, Kind::kNode, Kind::kCore, Kind::kPu}) {
    if (m.level(kind) == nullptr) return std::string("no level ") + kind_name(kind);
  }
  if (m.levels().front().kind != Kind::kMachine || m.levels().back().kind != Kind::kPu) {
    return "order of levels";
  }

  if (m.n_nodes == 0) return "no NUMA node";
  uint32_t attached = 0;
  for (const Domain& d : all) {
    attached += d.n_nodes;
    for (const NumaNode& node : m.nodes_of(d)) {
      if (node.domain != d.id) return "nodes_of";
    }
  }
  if (attached != m.n_nodes) return "nodes attached twice or never";
  std::set<uint32_t> homes;
  for (uint32_t pu = 0; pu < m.n_pus; pu++) {
    if (m.node_of_pu(pu) >= m.n_nodes) return "node_of_pu";
    homes.insert(m.node_of_pu(pu));
  }
  for (uint32_t i = 0; i < m.n_nodes; i++) {
    if (m.node_of_os(m.node_array[i].os_index) != i) return "node_of_os";
    if (m.node_array[i].has_pus && homes.count(i) == 0) return "has_pus without a PU";
    if (m.node_distance(i, i) == 0) return "node_distance";
  }
  uint32_t of_kinds = 0;
  for (const CpuKind& kind : m.cpu_kinds()) of_kinds += kind.n_pus;
  if (of_kinds != m.n_pus) return "cpu kinds";
  return "";
}

}  // namespace bosk::topology
