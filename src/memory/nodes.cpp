// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One table, replaced as a whole.
#include "memory/nodes.h"

#include <linux/mempolicy.h>

#include <atomic>

#include "base/pages.h"
#include "base/syscalls.h"

namespace bosk::memory {
namespace {

constexpr uint32_t kMostKernelNodes = 1024;  // the kernel's own limit

struct NodeTable {
  const topology::Machine* machine;
  int kernel_of[];  // machine->n_nodes entries
};

/// Replaced by tests only; the old one stays mapped, because somebody may still be looking at it.
constinit std::atomic<const NodeTable*> table{nullptr};

/// The nodes that this process may allocate on, at least one. Returns how many.
uint32_t allowed_nodes(int nodes[kMostKernelNodes]) {
  uint64_t mask[kMostKernelNodes / 64] = {};
  uint32_t count = 0;
  if (base::raw_syscall(SYS_get_mempolicy, 0, base::address_of(mask), kMostKernelNodes, 0,
                        MPOL_F_MEMS_ALLOWED) == 0) {
    for (uint32_t node = 0; node < kMostKernelNodes; ++node)
      if ((mask[node / 64] >> (node % 64) & 1) != 0) nodes[count++] = static_cast<int>(node);
  }
  if (count == 0) nodes[count++] = 0;  // a kernel without NUMA
  return count;
}

}  // namespace

bool use_machine(const topology::Machine& machine) {
  auto* made = static_cast<NodeTable*>(
      base::map_pages(sizeof(NodeTable) + sizeof(int) * size_t{machine.n_nodes}));
  if (made == nullptr) return false;
  made->machine = &machine;
  int existing[kMostKernelNodes];
  const uint32_t n_existing = machine.this_system ? 0 : allowed_nodes(existing);
  for (uint32_t i = 0; i < machine.n_nodes; ++i) {
    made->kernel_of[i] = machine.this_system ? static_cast<int>(machine.node_array[i].os_index)
                                             : existing[i % n_existing];
  }
  // release: the table is complete when it is seen.
  table.store(made, std::memory_order_release);
  return true;
}

const topology::Machine* machine_in_use() {
  const NodeTable* known = table.load(std::memory_order_acquire);
  return known == nullptr ? nullptr : known->machine;
}

int kernel_node_of(NodeIndex node) {
  const NodeTable* known = table.load(std::memory_order_acquire);
  if (known == nullptr) return node < kMostKernelNodes ? static_cast<int>(node) : -1;
  return node < known->machine->n_nodes ? known->kernel_of[node] : -1;
}

NodeIndex node_of_kernel(int kernel_node) {
  if (kernel_node < 0) return kNoNode;
  const auto number = static_cast<uint32_t>(kernel_node);
  const NodeTable* known = table.load(std::memory_order_acquire);
  if (known == nullptr) return number < kMostKernelNodes ? number : kNoNode;
  if (known->machine->this_system) return known->machine->node_of_os(number);
  for (uint32_t i = 0; i < known->machine->n_nodes; ++i)
    if (known->kernel_of[i] == kernel_node) return i;
  return kNoNode;
}

}  // namespace bosk::memory
