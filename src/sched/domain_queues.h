// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One run queue per domain of a machine, and for every PU the queues that cover it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sched/run_queue.h"
#include "topology/machine.h"

namespace bosk::sched {

/// The queues that cover one PU, the PU's own first, the machine's last. A worker keeps a copy.
struct QueuePath {
  RunQueue* const* queue = nullptr;
  uint32_t length = 0;
};

/// The queue tree (2005 §3.2). Where an entity is queued says who may run it: every PU below that
/// domain. Queue number i belongs to domain number i; its rank is i, too, because domains are
/// numbered breadth first: a higher level has smaller numbers, as the order of locks wants it.
///
/// Plain data without constructor or destructor work: build() and release() say when. The machine
/// must outlive it. Memory: 128 bytes a domain, 8 bytes per PU and level.
class DomainQueues {
 public:
  /// False: out of memory; nothing is left behind. O(domains + PUs × levels).
  bool build(const topology::Machine& machine);
  /// All queues must be empty and nobody may look at them any more.
  void release();

  const topology::Machine& machine() const { return *machine_; }
  RunQueue& of(uint32_t domain) const { return queues_[domain]; }
  WorkSigns& signs() const { return *signs_; }
  QueuePath path(uint32_t pu) const {
    return {paths_ + size_t{pu} * stride_, machine_->pu(pu).depth + 1u};
  }

 private:
  const topology::Machine* machine_ = nullptr;
  RunQueue* queues_ = nullptr;
  WorkSigns* signs_ = nullptr;
  RunQueue** paths_ = nullptr;
  size_t bytes_ = 0;
  uint32_t stride_ = 0;  ///< entries of paths_ per PU
};

}  // namespace bosk::sched
