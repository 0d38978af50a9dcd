// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The NUMA nodes of this process's memory spaces, found out when an allocator first asks for one.
#pragma once

#include "omp/memory_nodes.h"

namespace bosk::omp {

/// What the space and the partition of an allocator mean here, now, for the calling thread; not yet for
/// blocks that share pages. `home`: the node of the space that is nearest to it, kNone if the plan asks
/// for nothing. The first call with something to ask reads the machine if it has several nodes. Preemption
/// must be on.
MemoryPlan plan_here(const AllocatorTraits& traits, uint32_t* home);

/// The numbers in a list like "0-3,8"; stops at what is none.
NodeSet parse_node_list(const char* text);

/// What a node could give at once, from the text of its `meminfo`: free memory and cached files that
/// nobody has looked at for a while. In bytes.
uint64_t room_in(const char* meminfo);

/// The nodes have room for so many bytes now, or nobody can tell.
bool nodes_have_room(const NodeSet& nodes, size_t bytes);

}  // namespace bosk::omp
