// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks the kernel which nodes the process may have memory of.
#include "memory/machine_nodes.h"

#include <linux/mempolicy.h>

#include "base/syscalls.h"

namespace bosk::memory {

void MachineNodes::set(const topology::Machine& machine) {
  machine_ = &machine;
  const long failed = base::raw_syscall(SYS_get_mempolicy, 0, base::address_of(allowed_),
                                        kMostKernelNodes, 0, MPOL_F_MEMS_ALLOWED);
  n_allowed_ = 0;
  if (failed == 0)
    for (const uint64_t word : allowed_)
      n_allowed_ += static_cast<uint32_t>(__builtin_popcountll(word));
  // A kernel without NUMA, or a sandbox that forbids to ask: there is one node then.
  if (n_allowed_ == 0) {
    allowed_[0] = 1;
    n_allowed_ = 1;
  }
  real_ = failed == 0 && machine.this_system && !machine.node_array[0].assumed;
}

bool MachineNodes::usable(NodeIndex node) const {
  if (node >= count()) return false;
  const topology::NumaNode& known = machine_->node_array[node];
  return known.bytes != 0 && (!real_ || allowed(known.os_index));
}

uint32_t MachineNodes::kernel_node(NodeIndex node) const {
  if (real_) return machine_->node_array[node].os_index;
  uint32_t left = node % n_allowed_;
  for (uint32_t i = 0; i < kMostKernelNodes; ++i)
    if (allowed(i) && left-- == 0) return i;
  return 0;
}

NodeIndex MachineNodes::from_kernel(uint32_t node) const {
  if (real_) return machine_->node_of_os(node);
  return machine_->n_nodes == 1 ? 0 : kNone;
}

}  // namespace bosk::memory
