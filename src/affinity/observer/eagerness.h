// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much of what observing may cost is spent: all of it while there is something to learn.
#pragma once

#include <cstdint>

#include "affinity/learner.h"
#include "affinity/sharing_matrix.h"

namespace bosk::affinity {

/// A program that does what it did is looked at less often: half as much after a second without news in which each thread was seen a thousand times, a quarter half a
/// second later, and after another one an eighth. News are: something was moved, many threads are new, or threads share otherwise than before. One owner.
class Eagerness {
 public:
  /// The learner must live longer.
  explicit Eagerness(const Learner* learner) : learner_(learner) {}

  /// Something was moved, or has begun.
  void news(double now_ns);
  /// Of the bound. O(1), and once a second O(T²) for 4 to 256 threads.
  double part(double now_ns);

 private:
  bool is_sharing_otherwise();

  const Learner* learner_;
  double since_ = 0;  ///< the last news
  uint64_t accesses_ = 0;
  size_t threads_ = 0;  ///< that were known then
  double look_again_ = 0;
  SharingMatrix before_;  ///< at the last look that compared
  SharingMatrix fresh_;   ///< and what had come since the one before
  double likeness_ = 0;   ///< of the one to the next, lately
};

}  // namespace bosk::affinity
