// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The NUMA nodes of the machine as the memory manager sees them: by the machine tree's numbers, with the
// kernel's beside them for system calls.
#pragma once

#include <stdint.h>

#include "topology/machine.h"

namespace bosk::memory {

/// Position in topology::Machine::nodes. What the kernel calls it, only a system call need know.
using NodeIndex = uint32_t;
using topology::kNone;

/// The kernel's own limit.
constexpr uint32_t kMostKernelNodes = 1024;

/// Set once, constant afterwards. On an invented machine (BOSK_SYNTHETIC, XML) nodes that the kernel
/// does not have stand for those that it has, in turn: bookkeeping goes by the machine, pages lie where
/// they can.
class MachineNodes {
 public:
  /// O(nodes) and two system calls. `machine` stays for good.
  void set(const topology::Machine& machine);

  const topology::Machine& machine() const { return *machine_; }
  uint32_t count() const { return machine_->n_nodes; }
  /// Of the kernel's nodes, how many the process may have memory of. One: there is nothing to tell it.
  uint32_t count_allowed() const { return n_allowed_; }
  /// The kernel's pages can be asked for their node, and it is one of the machine's.
  bool real() const { return real_; }
  /// It is a node of the machine that has memory, and the process's cpuset allows it.
  bool usable(NodeIndex node) const;
  /// What mbind(2) and move_pages(2) are told.
  uint32_t kernel_node(NodeIndex node) const;
  /// kNone: the machine has no such node.
  NodeIndex from_kernel(uint32_t node) const;

 private:
  bool allowed(uint32_t kernel_node) const {
    return kernel_node < kMostKernelNodes &&
           (allowed_[kernel_node / 64] >> (kernel_node % 64) & 1) != 0;
  }

  const topology::Machine* machine_ = nullptr;
  uint64_t allowed_[kMostKernelNodes / 64] = {};
  uint32_t n_allowed_ = 0;
  bool real_ = false;
};

}  // namespace bosk::memory
