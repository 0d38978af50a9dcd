// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which a thief of tasks looks at the queues of its team.
#pragma once

#include <stdint.h>

#include "topology/machine.h"

namespace bosk::omp {

/// Goes through queues 0 … count-1: those whose owners are in the thief's smallest domain first, then the others of the domain around
/// it, and so on; within such a ring from `first` on, going round. So a task goes no further than it must, and takes its creator's data
/// along no further. Then through all once more, because owners may have moved from ring to ring meanwhile: who finds nothing has looked
/// at each. O(levels * count) looks at where owners are, which lie side by side, for 2 * count looks at queues, each a line that
/// its owner writes.
class Victims {
 public:
  static constexpr uint32_t kEnd = topology::kNone;

  /// `domain`: the thief's PU; null: all are equally near, and there is one round.
  Victims(uint32_t count, uint32_t first, const topology::Domain* domain)
      : count_(count), first_(first < count ? first : 0), at_(first_), ring_(domain) {}

  /// `pu_of(i)`: where the owner of queue i is, kNone if that is not known: it comes last. Not called where all are equally near.
  template <class PuOf>
  uint32_t next(PuOf pu_of) {
    for (;;) {
      while (looked_at_ == count_) {
        if (ring_ == nullptr) return kEnd;
        widen();
      }
      const uint32_t queue = at_;
      at_ = at_ + 1 == count_ ? 0 : at_ + 1;
      ++looked_at_;
      if (ring_ == nullptr || in_ring(pu_of(queue))) return queue;
    }
  }

 private:
  bool in_ring(uint32_t pu) const {
    if (seen_ != nullptr && seen_->contains_pu(pu)) return false;
    return ring_->parent == nullptr || ring_->contains_pu(pu);
  }
  void widen() {
    seen_ = ring_;
    do ring_ = ring_->parent;
    while (ring_ != nullptr && ring_->parent != nullptr && ring_->n_pus() == seen_->n_pus());
    at_ = first_;
    looked_at_ = 0;
  }

  uint32_t count_;
  uint32_t first_;
  uint32_t at_;
  uint32_t looked_at_ = 0;        ///< in this ring
  const topology::Domain* ring_;  ///< without `seen_`; null: all queues
  const topology::Domain* seen_ = nullptr;
};

}  // namespace bosk::omp
