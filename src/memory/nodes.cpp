// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One machine's nodes, replaced as a whole.
#include "memory/nodes.h"

#include <atomic>
#include <new>

#include "base/pages.h"

namespace bosk::memory {
namespace {

/// Replaced by tests only; the old ones stay mapped, because somebody may still be looking at them.
constinit std::atomic<const MachineNodes*> in_use{nullptr};

const MachineNodes* known() {
  // acquire: they are complete when they are seen.
  return in_use.load(std::memory_order_acquire);
}

}  // namespace

bool use_machine(const topology::Machine& machine) {
  void* memory = base::map_pages(sizeof(MachineNodes));
  if (memory == nullptr) return false;
  auto* made = new (memory) MachineNodes;
  made->set(machine);
  in_use.store(made, std::memory_order_release);
  return true;
}

int kernel_node_of(NodeIndex node) {
  const MachineNodes* nodes = known();
  if (nodes == nullptr) return node < kMostKernelNodes ? static_cast<int>(node) : -1;
  return node < nodes->count() ? static_cast<int>(nodes->kernel_node(node)) : -1;
}

NodeIndex node_of_kernel(int kernel_node) {
  if (kernel_node < 0) return kNoNode;
  const auto number = static_cast<uint32_t>(kernel_node);
  const MachineNodes* nodes = known();
  if (nodes == nullptr) return number < kMostKernelNodes ? number : kNoNode;
  if (nodes->real()) return nodes->from_kernel(number);
  for (NodeIndex i = 0; i < nodes->count(); ++i)
    if (nodes->kernel_node(i) == number) return i;
  return kNoNode;
}

}  // namespace bosk::memory
