// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which NUMA nodes an allocator's memory goes to: the rules alone, on any machine (docs/openmp.md).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "omp/allocator_traits.h"
#include "topology/machine.h"

namespace bosk::omp {

/// A set of NUMA nodes, by the kernel's numbers.
struct NodeSet {
  static constexpr uint32_t kMost = 1024;  // the kernel's own limit
  uint64_t words[kMost / 64] = {};

  void add(uint32_t node) {
    if (node < kMost) words[node / 64] |= uint64_t{1} << (node % 64);
  }
  bool has(uint32_t node) const {
    return node < kMost && (words[node / 64] >> (node % 64) & 1) != 0;
  }
  /// The first node from `from` on; topology::kNone: there is none.
  uint32_t next(uint32_t from) const;
  uint32_t count() const;
  bool empty() const { return next(0) == topology::kNone; }
  bool operator==(const NodeSet&) const = default;
};

/// The nodes of a memory space. Of the default space: those that our CPUs are at. Of the large capacity
/// and high bandwidth spaces: the nodes that stand out in that, empty if none do.
NodeSet nodes_of_space(const topology::Machine& machine, MemorySpace space);

/// The one of `nodes` that is nearest to a Linux CPU; the first of equals. kNone: there is none.
uint32_t nearest_node(const topology::Machine& machine, const NodeSet& nodes, uint32_t cpu);

/// Where the pages of one block go.
struct MemoryPlan {
  enum class Kind : uint8_t {
    kAnywhere,     ///< nothing is asked of the kernel
    kOnNodes,      ///< on `nodes`, first of all on `home`
    kInterleaved,  ///< page by page round `nodes`
    kBlocked,      ///< one run of pages for each of `nodes`
  };
  Kind kind = Kind::kAnywhere;
  /// Not elsewhere, even if the nodes are full: the fallback is for that.
  bool strict = false;
  NodeSet nodes;
  uint32_t home = topology::kNone;
};

/// The plan for a block of an allocator with these traits, asked for on `home`, the nearest node of
/// the space (needed for nearest and blocked only). `nodes`: of the space, or of the default space if
/// that is empty (`special` says which).
MemoryPlan plan_memory(const AllocatorTraits& traits, const NodeSet& nodes, bool special,
                       uint32_t home);

/// The plan for a block that shares its page with others: parts and rounds of pages have no meaning,
/// so blocked is nearest.
MemoryPlan plan_of_page(const MemoryPlan& plan, uint32_t home);

/// A run of pages and what the kernel is told about it.
struct RangePolicy {
  size_t first_page;
  size_t pages;
  int mode;  ///< MPOL_*
  NodeSet nodes;
  uint32_t home;  ///< for MPOL_BIND: the node to begin with; kNone: none
};

/// How many ranges a block of so many pages has under the plan; no range is empty.
uint32_t n_ranges(const MemoryPlan& plan, size_t pages);
RangePolicy range_of(const MemoryPlan& plan, size_t pages, uint32_t i);

}  // namespace bosk::omp
