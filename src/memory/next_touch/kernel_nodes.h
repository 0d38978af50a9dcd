// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernel says of its NUMA nodes, asked in handlers of faults: by system calls alone, no malloc.
// Nodes here have the kernel's numbers, also where bosk's machine is an invented one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/machine_nodes.h"

namespace bosk::memory {

struct NodeMask {
  uint64_t words[kMostKernelNodes / 64];
  bool has(uint32_t node) const {
    return node < kMostKernelNodes && (words[node / 64] >> (node % 64) & 1) != 0;
  }
  void add(uint32_t node) {
    if (node < kMostKernelNodes) words[node / 64] |= uint64_t{1} << (node % 64);
  }
};

/// Answers of an invented kernel, for tests. A null pointer: ask the real one. For good: the thread that resolves may be late.
struct KernelNodesForTests {
  uint32_t count;                       ///< 0: the real number
  uint32_t (*node_of_caller)();         ///< where the toucher is
  int (*node_of_page)(uintptr_t page);  ///< negative: errno
  uint64_t (*free_pages)(uint32_t node);
};
void set_kernel_nodes_for_tests(const KernelNodesForTests* answers);

/// Nodes that have memory. 1: nothing can be anywhere else, and nobody needs to ask.
uint32_t count_memory_nodes();
/// The node of the CPU that the caller is on.
uint32_t node_of_caller();
/// The node of the CPU that another thread of the process was last on; of the caller's if unknown.
uint32_t node_of_thread(int tid);

/// Where pages are: nodes, or negative errno (-ENOENT: nothing there). At most kNodesAtOnce.
constexpr uint32_t kNodesAtOnce = 64;
void nodes_of_pages(uintptr_t first, uint32_t count, int* nodes);

/// Pages were just made for the node: is the last one there? Asked of some only while much of the node is free.
bool came_to_node(uintptr_t last_page, uint32_t pages, uint32_t node);

/// Moves pages to `node`; `status`: as above, afterwards. At most kNodesAtOnce. 0 or negative errno.
long move_to_node(uintptr_t first, uint32_t count, uint32_t node, int* status);

/// [begin, end), where nobody has a mark any more, is about to go to `node` from `goes` on, and nothing beside it: a huge page
/// that it is a part of is split. False: it cannot be.
bool part_from_neighbours(uintptr_t begin, uintptr_t end, uintptr_t goes, uint32_t node);

/// May so many pages for the caller be on the node (cpuset)? Asked once in a while.
bool node_is_allowed(uint32_t node, uint32_t pages);
/// Has the node room for `pages` more? Looks at its free memory once in a while.
bool node_has_room(uint32_t node, uint32_t pages);

/// The kernel has put pages elsewhere: for some touches there is no room.
void node_was_full(uint32_t node);

/// What mbind(2) says of the page's mapping. kAnywhere: no policy, the toucher decides.
enum class PagePolicy : uint8_t { kAnywhere, kThese, kFixed };
PagePolicy policy_of_page(uintptr_t page, NodeMask* nodes);

/// The caller's new pages go to the node, if it has room and no mapping's policy says otherwise.
void prefer_node(uint32_t node);
/// The caller runs on the node's CPUs from now on, where it may.
void run_on_node(uint32_t node);

}  // namespace bosk::memory
