// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine as a tree of domains: facade of the topology layer, with source.h (where a machine comes
// from) and process_cpus.h (the affinity mask alone). Rules and costs: docs/topology.md.
#pragma once

#include <stdint.h>

#include <span>

#include "topology/error.h"

namespace bosk::topology {

/// What a piece of hardware is. The order matters: a domain that stands for several kinds at once is
/// named by the first of them.
enum class Kind : uint8_t {
  kMachine,
  kPackage,
  kNode,  ///< the PUs that are local to one or more NUMA nodes
  kDie,
  kL3,
  kL2,
  kCore,
  kPu,
  kGroup,  ///< anything else that groups PUs: clusters, L4, groups made from distances
};
constexpr uint32_t kKinds = 9;

/// "Not known" or "there is none", for every index and OS number of this layer.
constexpr uint32_t kNone = UINT32_MAX;
/// Memory whose size nobody told. Never 0: a node may really have no memory.
constexpr uint64_t kUnknownBytes = UINT64_MAX;
/// SLIT distances, used where none are known (see Machine::distances_assumed).
constexpr uint32_t kLocalDistance = 10;
constexpr uint32_t kRemoteDistance = 20;

/// "machine", "package", "node", "die", "l3", "l2", "core", "pu", "group". Never null.
const char* kind_name(Kind kind);

/// The kind that a user means by a word, any case: the names above, their plurals and the usual other
/// names (socket, numa, numanode, l3cache, thread, hwthread …). "llc" is not a kind: see
/// Machine::cache_level(). False: no such word; `kind` is untouched.
bool parse_kind(const char* word, Kind* kind);

/// One domain: a set of PUs that share something. Every domain has at least two children or is a PU;
/// the one exception is the root of a machine with a single PU. Children are adjacent in memory, and
/// so are all domains of one depth.
struct Domain {
  Kind kind;          ///< the name it goes by; Kind::kMachine: only the root
  uint8_t depth;      ///< links up to the root; root: 0
  uint8_t height;     ///< links down to its deepest PU; PU: 0
  int8_t cpu_kind;    ///< index into Machine::cpu_kinds if all its PUs are of one kind, else -1
  uint16_t kinds;     ///< bit 1 << Kind for every kind folded into it, its own included
  uint32_t id;        ///< position in Machine::domains (breadth first); root: 0
  uint32_t index;     ///< position among the domains of this kind, left to right
  uint32_t rank;      ///< position among its siblings
  uint32_t os_index;  ///< the number Linux gives it; PU: the CPU number; kNone: it has none
  uint32_t first_pu;  ///< its PUs are first_pu … last_pu, logical numbers, both included
  uint32_t last_pu;
  uint32_t n_children;
  uint32_t first_node;  ///< NUMA nodes attached here: Machine::nodes[first_node], n_nodes of them
  uint32_t n_nodes;
  const Domain* parent;       ///< root: null
  const Domain* first_child;  ///< PU: null
  uint64_t local_bytes;  ///< memory of the nodes attached here; kUnknownBytes if one does not say
  uint64_t total_bytes;  ///< the same, with everything below

  uint32_t n_pus() const { return last_pu - first_pu + 1; }
  bool is_pu() const { return n_children == 0; }
  bool contains_pu(uint32_t pu) const { return pu >= first_pu && pu <= last_pu; }
  /// Does it stand for `k`, by name or folded? A package with one L3 is also that L3.
  bool stands_for(Kind k) const { return ((kinds >> static_cast<unsigned>(k)) & 1) != 0; }
  std::span<const Domain> children() const { return {first_child, n_children}; }
};

/// A NUMA node. Position in Machine::nodes is its logical number: left to right by where it is attached,
/// those inside a domain before the domain's own.
struct NumaNode {
  uint32_t os_index;  ///< the number mbind(2) and numactl know it by
  uint32_t domain;    ///< id of the domain it is attached to
  uint64_t bytes;     ///< kUnknownBytes: not told
  bool has_pus;       ///< it is the node_of_pu of some PU; false: memory only (CXL, HBM beside DDR,
                      ///< or none of its PUs is ours)
  bool assumed;       ///< true: the source knew no NUMA node, one was made up for the whole machine
  char subtype[14];   ///< "HBM", "MCDRAM", … as hwloc tells it; often empty
  uint64_t
      bandwidth;  ///< MiB/s from where it is fastest, as hwloc's memory attribute; 0: not known
};

/// How fast the PUs of one node reach the memory of one, as firmware (HMAT) or a description tells it. 0: not told.
struct NodeLink {
  uint32_t read_latency;     ///< ns
  uint32_t write_latency;    ///< ns
  uint32_t read_bandwidth;   ///< MiB/s
  uint32_t write_bandwidth;  ///< MiB/s

  bool told() const {
    return (read_latency | write_latency | read_bandwidth | write_bandwidth) != 0;
  }
};

/// A sort of core, on hybrid machines. There is always at least one.
struct CpuKind {
  int32_t efficiency;  ///< 0: the most frugal; higher: faster and hungrier; -1: not known
  uint32_t n_pus;      ///< PUs of this kind
  uint32_t max_mhz;    ///< 0: not known
  char core_type[20];  ///< "IntelCore", "IntelAtom", …; often empty
};

/// A level: for one kind, a partition of all PUs into domains, left to right. A PU whose part of the
/// machine lacks the kind is stood in for by the largest domain around it that has none of the kind
/// inside; where domains of one kind are nested (groups, nodes), the innermost ones count.
struct Level {
  Kind kind;
  bool kept;  ///< some domain bears this name; false: folded into others everywhere
  uint32_t n_domains;
  const uint32_t*
      domains;            ///< n_domains ids, in PU order; no PU is in two of them, none is left out
  const uint32_t* of_pu;  ///< per PU: id of its domain
};

/// The machine. Immutable; one block of memory; every member function is const, allocates nothing,
/// may be called from any thread at any time (also with preemption off) and is O(1) unless it says
/// otherwise. Arguments must be in range: PUs are logical numbers 0 … n_pus-1, left to right.
struct Machine {
  uint32_t n_pus;
  uint32_t n_domains;
  uint32_t n_nodes;  ///< at least 1
  uint32_t n_levels;
  uint32_t n_cpu_kinds;  ///< at least 1
  uint32_t n_excluded;   ///< PUs that the source has but the affinity mask forbids
  uint32_t n_os_cpus;    ///< largest CPU number + 1
  uint32_t n_os_nodes;   ///< largest NUMA node number + 1
  bool this_system;  ///< its CPU and node numbers are those of the running system: may be bound to
  bool distances_assumed;  ///< the node distances are 10 and 20 because nobody told them
  uint8_t n_depths;        ///< depths in use: root's height + 1
  const char* reader;      ///< "hwloc", "sysfs" or "flat": who read it
  const char* source;      ///< "this machine", "XML file x.xml", … for messages
  const Domain* domain_array;
  const Level* level_array;  ///< outermost first; PUs last
  const NumaNode* node_array;
  const CpuKind* cpu_kind_array;
  const uint32_t* pu_of_os_array;    ///< n_os_cpus entries
  const uint32_t* node_of_os_array;  ///< n_os_nodes entries
  const uint32_t* node_of_pu_array;  ///< n_pus entries
  const uint32_t* distance_array;    ///< n_nodes × n_nodes, row: from
  const NodeLink* link_array;        ///< likewise; null: nobody told any
  int8_t level_of_kind[kKinds];      ///< index into level_array, -1: the machine lacks the kind

  const Domain& root() const { return domain_array[0]; }
  /// All domains, breadth first.
  std::span<const Domain> domains() const { return {domain_array, n_domains}; }
  /// All levels that the hardware has, kept or folded, outermost first. Machine, package, node, core
  /// and PU are always among them (a machine that names no package is one package, a PU without a
  /// core is a core).
  std::span<const Level> levels() const { return {level_array, n_levels}; }
  std::span<const NumaNode> nodes() const { return {node_array, n_nodes}; }
  std::span<const CpuKind> cpu_kinds() const { return {cpu_kind_array, n_cpu_kinds}; }
  std::span<const NumaNode> nodes_of(const Domain& d) const {
    return {node_array + d.first_node, d.n_nodes};
  }

  /// The leaf of a PU.
  const Domain& pu(uint32_t logical) const {
    return domain_array[level_array[n_levels - 1].of_pu[logical]];
  }
  /// Linux CPU number of a PU.
  uint32_t os_of_pu(uint32_t logical) const { return pu(logical).os_index; }
  /// PU of a Linux CPU number; kNone: this machine (or this process's mask) has no such CPU.
  uint32_t pu_of_os(uint32_t cpu) const { return cpu < n_os_cpus ? pu_of_os_array[cpu] : kNone; }
  /// Logical NUMA node of a node number; kNone: there is no such node.
  uint32_t node_of_os(uint32_t os) const { return os < n_os_nodes ? node_of_os_array[os] : kNone; }

  /// The level of a kind, or null if the machine lacks it.
  const Level* level(Kind kind) const {
    const int8_t at = level_of_kind[static_cast<unsigned>(kind)];
    return at < 0 ? nullptr : level_array + at;
  }
  /// The level by a user's word ("l3", "socket", "numa" …). Null: the word is unknown or the machine
  /// lacks the level; `error` (may be null) says which and lists the levels there are. O(levels).
  const Level* find_level(const char* word, Error* error) const;
  /// The level of the last cache: L3, else L2, else cores. For OMP_PLACES=ll_caches.
  const Level& cache_level() const;
  /// The domain that holds `logical` at the level of `kind`; null if the machine lacks the level.
  const Domain* domain_of_pu(uint32_t logical, Kind kind) const {
    const Level* l = level(kind);
    return l == nullptr ? nullptr : domain_array + l->of_pu[logical];
  }
  /// Which hardware thread of its core a PU is: 0 for the first.
  uint32_t smt_rank(uint32_t logical) const {
    return logical - domain_of_pu(logical, Kind::kCore)->first_pu;
  }

  /// The smallest domain that holds both. O(depth): at most 9 steps or so.
  const Domain& common_ancestor(const Domain& a, const Domain& b) const {
    const Domain* d = &a;
    while (b.first_pu < d->first_pu || b.last_pu > d->last_pu) d = d->parent;
    // Equal ranges happen only on a one-PU machine, where the root is the ancestor of its PU.
    return b.depth < d->depth ? b : *d;
  }
  /// How far apart two PUs are, in levels: the height of their common ancestor; 0: the same PU.
  /// Symmetric, and never more than the larger of two legs (an ultrametric). O(depth).
  uint32_t distance(uint32_t a, uint32_t b) const {
    return a == b ? 0 : common_ancestor(pu(a), pu(b)).height;
  }

  /// The nearest NUMA node of a PU (logical number): attached to the smallest domain around it that
  /// has one; if none is, the leftmost inside that domain. Nodes with PUs go before memory-only ones.
  /// Always a node.
  uint32_t node_of_pu(uint32_t logical) const { return node_of_pu_array[logical]; }
  /// Distance between two NUMA nodes (logical numbers) in SLIT units: 10 is local.
  uint32_t node_distance(uint32_t from, uint32_t to) const {
    return distance_array[static_cast<uint64_t>(from) * n_nodes + to];
  }
  /// What is told of the way between two nodes (logical numbers): all 0 where nothing is.
  NodeLink link(uint32_t from, uint32_t to) const {
    return link_array == nullptr ? NodeLink{}
                                 : link_array[static_cast<uint64_t>(from) * n_nodes + to];
  }
};

/// Gives a machine back. Null is fine. Nobody may be using it.
void free_machine(Machine* machine);

}  // namespace bosk::topology
