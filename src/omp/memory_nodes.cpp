// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Spaces to nodes, traits to plans, plans to the kernel's policies.
#include "omp/memory_nodes.h"

#include <linux/mempolicy.h>
#include <string.h>

// Linux 5.15.
#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY 5
#endif

namespace bosk::omp {
namespace {

using topology::kNone;
using topology::Machine;
using topology::NumaNode;

bool has_memory(const NumaNode& node) { return node.bytes != 0; }

/// Nodes of a kind differ by a little, in what was measured or in what the firmware keeps for itself:
/// only what the others have less than three quarters of stands out.
bool stands_out(uint64_t value, uint64_t most) { return value / 3 >= most / 4; }

/// The nodes that have most of something; empty if all have, or if one does not tell.
template <typename Value>
NodeSet richest(const Machine& machine, uint64_t unknown, Value value) {
  uint64_t most = 0;
  for (const NumaNode& node : machine.nodes()) {
    if (!has_memory(node)) continue;
    if (value(node) == unknown) return {};
    if (value(node) > most) most = value(node);
  }
  NodeSet found;
  bool differ = false;
  for (const NumaNode& node : machine.nodes()) {
    if (!has_memory(node)) continue;
    if (stands_out(value(node), most)) {
      found.add(node.os_index);
    } else {
      differ = true;
    }
  }
  return differ ? found : NodeSet{};
}

bool is_named_fast(const NumaNode& node) {
  return strcmp(node.subtype, "HBM") == 0 || strcmp(node.subtype, "MCDRAM") == 0;
}

/// Where nobody told bandwidths, hwloc's word for a node says as much.
NodeSet named_fast(const Machine& machine) {
  NodeSet found;
  bool differ = false;
  for (const NumaNode& node : machine.nodes()) {
    if (!has_memory(node)) continue;
    if (is_named_fast(node)) {
      found.add(node.os_index);
    } else {
      differ = true;
    }
  }
  return differ ? found : NodeSet{};
}

NodeSet nodes_of_cpus(const Machine& machine) {
  NodeSet with_cpus;
  NodeSet all;
  for (const NumaNode& node : machine.nodes()) {
    if (!has_memory(node)) continue;
    all.add(node.os_index);
    if (node.has_pus) with_cpus.add(node.os_index);
  }
  return with_cpus.empty() ? all : with_cpus;
}

}  // namespace

uint32_t NodeSet::next(uint32_t from) const {
  for (uint32_t word = from / 64; word < kMost / 64; word++) {
    uint64_t bits = words[word];
    if (word == from / 64) bits &= ~uint64_t{0} << (from % 64);
    if (bits != 0) return word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
  }
  return kNone;
}

uint32_t NodeSet::count() const {
  uint32_t n = 0;
  for (const uint64_t word : words) n += static_cast<uint32_t>(__builtin_popcountll(word));
  return n;
}

NodeSet nodes_of_space(const Machine& machine, MemorySpace space) {
  switch (space) {
    case kLargeCapacitySpace:
      return richest(machine, topology::kUnknownBytes, [](const NumaNode& n) { return n.bytes; });
    case kHighBandwidthSpace: {
      const NodeSet fastest =
          richest(machine, 0, [](const NumaNode& node) { return node.bandwidth; });
      return fastest.empty() ? named_fast(machine) : fastest;
    }
    default:
      return nodes_of_cpus(machine);
  }
}

uint32_t nearest_node(const Machine& machine, const NodeSet& nodes, uint32_t cpu) {
  const uint32_t pu = machine.pu_of_os(cpu);
  const uint32_t from = pu != kNone ? machine.node_of_pu(pu) : kNone;
  uint32_t nearest = kNone;
  uint32_t least = kNone;
  for (uint32_t i = 0; i < machine.n_nodes; i++) {
    const uint32_t os_index = machine.nodes()[i].os_index;
    if (!nodes.has(os_index)) continue;
    // A CPU that is not ours is as far from each.
    const uint32_t distance = from != kNone ? machine.node_distance(from, i) : 0;
    // Where no distances are known, memory beside the same CPUs is nearer than others.
    const bool beside = from != kNone && machine.nodes()[i].domain == machine.nodes()[from].domain;
    const uint32_t rank = distance * 2 + (beside ? 0 : 1);
    if (nearest != kNone && rank >= least) continue;
    nearest = os_index;
    least = rank;
  }
  return nearest;
}

MemoryPlan plan_memory(const AllocatorTraits& traits, const NodeSet& nodes, bool special,
                       uint32_t home) {
  using Kind = MemoryPlan::Kind;
  MemoryPlan plan;
  plan.nodes = nodes;
  // The default memory is all memory: what does not fit on its nodes may go where it does. So may what
  // the fallback would get from there anyway.
  plan.strict = special && traits.fallback != kDefaultMemFallback;
  switch (traits.partition) {
    case kNearest:
      plan.kind = Kind::kOnNodes;
      plan.home = home;
      break;
    case kBlocked:
      plan.kind = Kind::kBlocked;
      break;
    case kInterleaved:
      plan.kind = Kind::kInterleaved;
      break;
    default:
      plan.kind = special ? Kind::kOnNodes : Kind::kAnywhere;
      break;
  }
  if (nodes.empty()) plan.kind = Kind::kAnywhere;
  return plan;
}

MemoryPlan plan_of_page(const MemoryPlan& plan, uint32_t home) {
  MemoryPlan page = plan;
  if (plan.kind == MemoryPlan::Kind::kBlocked) {
    page.kind = MemoryPlan::Kind::kOnNodes;
    page.home = home;
  }
  return page;
}

uint32_t n_ranges(const MemoryPlan& plan, size_t pages) {
  if (plan.kind == MemoryPlan::Kind::kAnywhere || pages == 0) return 0;
  if (plan.kind != MemoryPlan::Kind::kBlocked) return 1;
  const uint32_t nodes = plan.nodes.count();
  return pages < nodes ? static_cast<uint32_t>(pages) : nodes;
}

RangePolicy range_of(const MemoryPlan& plan, size_t pages, uint32_t i) {
  RangePolicy range{0, pages, MPOL_INTERLEAVE, plan.nodes, kNone};
  if (plan.kind == MemoryPlan::Kind::kInterleaved) return range;
  range.home = plan.home;
  if (plan.kind == MemoryPlan::Kind::kBlocked) {
    // The first `larger` ranges have a page more.
    const size_t n = n_ranges(plan, pages);
    const size_t each = pages / n;
    const size_t larger = pages % n;
    range.first_page = i * each + (i < larger ? i : larger);
    range.pages = each + (i < larger ? 1 : 0);
    range.home = plan.nodes.next(0);
    for (uint32_t k = 0; k < i; k++) range.home = plan.nodes.next(range.home + 1);
  }
  if (plan.strict) {
    range.mode = MPOL_BIND;
  } else if (range.home != kNone) {
    range.mode = MPOL_PREFERRED;
    range.nodes = {};
    range.nodes.add(range.home);
    range.home = kNone;
  } else {
    range.mode = MPOL_PREFERRED_MANY;
  }
  return range;
}

}  // namespace bosk::omp
