// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which workers are near: their PUs on the machine, the order to look through them, a bubble's reach.
#pragma once

#include <stdint.h>

#include "topology/machine.h"

namespace bosk::sched {

/// The PU that a worker plays: worker i has PU i, in the machine's order; those that are too many go
/// round.
inline uint32_t pu_of_worker(const topology::Machine& machine, uint32_t worker) {
  return worker < machine.n_pus ? worker : worker % machine.n_pus;
}

/// PUs first … last in one word, so that thieves may read it while the bubble is used again.
constexpr uint64_t reach_of(uint32_t first_pu, uint32_t last_pu) {
  return uint64_t{last_pu} << 32 | first_pu;
}
constexpr uint64_t kReachAll = reach_of(0, UINT32_MAX);
constexpr uint64_t kReachNobody = reach_of(UINT32_MAX, 0);
constexpr bool reaches(uint64_t reach, uint32_t pu) {
  return pu >= static_cast<uint32_t>(reach) && pu <= static_cast<uint32_t>(reach >> 32);
}

/// Goes through workers 0 … count-1, each once: those of a domain first, then the others of the
/// domain around it, and so on; among equals those that follow next, going round, so that not all
/// thieves come to the same victim first. Domains are ranges of PUs, and workers are numbered like
/// those, so nothing is stored or computed in advance: O(levels + count) for all of it.
class WorkerOrder {
 public:
  static constexpr uint32_t kEnd = topology::kNone;

  /// Without a machine: by number, from `start` on.
  WorkerOrder(uint32_t start, uint32_t count)
      : count_(count),
        stride_(count),
        at_(start < count ? start : 0),
        end_(count),
        second_end_(at_) {}
  /// By distance from `domain`. `worker_of`: who has which PU, of as many workers as there are PUs; null:
  /// those of the same number.
  WorkerOrder(const topology::Machine& machine, const topology::Domain& domain, uint32_t count,
              const uint32_t* worker_of = nullptr)
      : count_(count),
        stride_(machine.n_pus),
        worker_of_(worker_of),
        at_(domain.first_pu),
        end_(domain.last_pu + 1),
        around_(&domain) {}

  uint32_t next() {
    for (;;) {
      if (same_pu_ < count_) {
        const uint32_t worker = same_pu_;
        same_pu_ += stride_;
        return worker;
      }
      if (worker_of_ != nullptr && at_ < end_) {
        same_pu_ = at_ + stride_;
        const uint32_t worker = worker_of_[at_++];
        if (worker < count_) return worker;
      } else if (at_ < end_ && at_ < count_) {
        same_pu_ = at_++;
      } else if (second_ < second_end_) {
        at_ = second_;
        end_ = second_end_;
        second_end_ = 0;
      } else if (around_ == nullptr || around_->parent == nullptr) {
        return kEnd;
      } else {
        const topology::Domain& seen = *around_;
        around_ = seen.parent;
        at_ = seen.last_pu + 1;
        end_ = around_->last_pu + 1;
        second_ = around_->first_pu;
        second_end_ = seen.first_pu;
      }
    }
  }

 private:
  uint32_t count_;
  uint32_t stride_;  ///< from one worker of a PU to the next one
  const uint32_t* worker_of_ = nullptr;
  uint32_t same_pu_ = kEnd;
  uint32_t at_;  ///< the range that is gone through: its next PU, and the one behind its last
  uint32_t end_;
  uint32_t second_ = 0;  ///< the range after it, empty if second_end_ is not larger
  uint32_t second_end_ = 0;
  const topology::Domain* around_ = nullptr;  ///< all of it has been seen after these two ranges
};

}  // namespace bosk::sched
