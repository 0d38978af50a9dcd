// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which thread should run where, by who shares with whom: the mapping (Diener 2014, section 3.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "affinity/sharing_matrix.h"
#include "topology/machine.h"

namespace bosk::affinity {

/// For each thread a PU of the machine (a logical number); kNoPu: it is not known where it is.
using Placement = std::vector<uint32_t>;
constexpr uint32_t kNoPu = topology::kNone;

/// Whose sharing counts: each thread's strongest partners, sorted by thread. What a thread shares with more than these is noise beside them, and
/// a mapper's time goes with the number of edges.
struct SharingGraph {
  struct Edge {
    uint32_t thread;
    uint32_t weight;
  };
  std::vector<uint32_t>
      first;  ///< of thread t: edges[first[t]] … edges[first[t + 1]), both directions of each
  std::vector<Edge> edges;

  uint32_t threads() const { return static_cast<uint32_t>(first.size()) - 1; }
  std::span<const Edge> of(uint32_t thread) const {
    return {edges.data() + first[thread], first[thread + 1] - first[thread]};
  }
};
constexpr uint32_t kMostPartners = 32;

/// O(T²).
SharingGraph strongest_sharing(const SharingMatrix& matrix, uint32_t partners = kMostPartners);

/// What one event of sharing costs between two PUs, in units of the machine's node distances: 10 is what local memory costs, caches cost less, and
/// other nodes what their distance says. 0: the same PU. O(depth).
uint32_t sharing_cost(const topology::Machine& machine, uint32_t a, uint32_t b);

/// Of all sharing: the sum over pairs. Threads without a place cost nothing. O(edges), or O(T²), times depth.
double total_cost(const SharingGraph& graph, const topology::Machine& machine,
                  std::span<const uint32_t> placement);
double total_cost(const SharingMatrix& matrix, const topology::Machine& machine,
                  std::span<const uint32_t> placement);

/// Dual recursive bipartitioning of threads and tree with our own means: each domain gets its share of the threads by its PUs (so that no PU is
/// idle while another has two), cut where little is shared. O(T · partners · log PUs) and some.
Placement map_by_tree(const SharingGraph& graph, const topology::Machine& machine);

/// The same by the library Scotch, if it can be opened and the machine is regular (all domains of a depth alike). Empty: not possible; `why` (may be
/// null) says why, in a few words.
Placement map_by_scotch(const SharingGraph& graph, const topology::Machine& machine,
                        const char** why);

/// Domains that are alike change places so that as few threads as possible have to move from where they are; it costs the same.
void keep_in_place(Placement* placement, std::span<const uint32_t> present,
                   const topology::Machine& machine, const SharingGraph& graph);

/// What a mapping is worth.
struct Proposal {
  Placement placement;
  double cost_now = 0;
  double cost_then = 0;
  uint32_t moves = 0;     ///< threads that change their PU
  bool is_worth = false;  ///< the gain is neither noise nor too small for the moves
  const char* by = "";    ///< "Scotch" or "tree": who found it

  double gain() const { return cost_now == 0 ? 0 : 1 - cost_then / cost_now; }
};

/// The better one of both mappings (of many threads Scotch's, if there is one), compared with where the threads are. A gain that counting by chance would give is none: of all ways to place T
/// threads a random matrix prefers one, by some √(2 ln T!) standard deviations of what was counted. All pairs count here, not only the strongest,
/// which chance has made so. Threads that the matrix does not know stay where they are. O(T²): 1,024 threads take some 50 ms.
Proposal propose(const SharingMatrix& matrix, const topology::Machine& machine,
                 std::span<const uint32_t> present);

}  // namespace bosk::affinity
