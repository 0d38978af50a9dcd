// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// memory: threads and bubbles go where the memory is that they use, within the load balance (2009 §3.3).
//
//     attached     A: 8 MiB on node 1   B( b1: 4 MiB on 0, b2: 4 MiB on 1 )   c1 c2: nothing
//     node 0 | 1   b1 c1 c2           | A b2         B is torn and opens; c1 and c2 go where there is room
//     within       as cache: teammates under one cache, on the PUs where they were
//
// Bytes per node of what is attached to an entity are its footprint (Figures::footprint); a bubble's has those of its
// members added. What has none goes by that of the nearest bubble around it.
//
// Algorithm, for some entities on a domain with several nodes:
//   1. What has most bytes at stake first (those on its best node beyond the mean of all nodes); memory that
//      is interleaved draws nothing.
//   2. A bubble opens if less than three quarters of what its members use lie on its best node.
//   3. An entity stays on the node where it was if as much as 80 % of what its best one has of it lie there, too;
//      else it goes to the best one. So the last distribution is kept when nothing speaks against it.
//   4. A node takes what leaves it with at most *most* percent of its fair share of the load, or with a PU for
//      each thread. What it cannot take opens; a single thread goes to the node with most of its bytes among
//      those with room, of equals the nearest.
//   5. What nothing draws stays on the node where it was, or goes to the emptiest, opened if it is too large.
//   6. Within each node, or from the next policy's level down: `cache`.
// Where there is no footprint, or one node, all of it is `cache`.
//
// When it is decided again (2009 §3.1): when the engine is told that a footprint changed (PolicyEngine::
// memory_changed), and a distribution would bring threads nearer to an eighth or more of the bytes that are attached; see
// docs/policies.md. PUs that have nothing to do take from the nearest queues, as with cache.
//
// Balance: a node has at most *most* percent of its share or one thread more than the emptiest, unless each
// thread has a PU.
//
// Argument: *most* (`memory:200`, default 133: with two nodes, one may have twice as much to do as the other;
// 100 … 10000). Teams: as cache; members have no footprints before they run.
//
// Cost: O(n · (N + log n)) for n entities and N nodes, and cache's within them. Without footprints: n loads more than
// cache. Remembered: Figures::last_domain, nothing else.
#pragma once

#include "policies/policy.h"

namespace bosk::policies {

extern const PolicyOps kMemoryPolicy;

}  // namespace bosk::policies
