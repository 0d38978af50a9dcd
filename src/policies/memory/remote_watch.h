// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When what is known of accesses to other nodes is worth a decision: MemoryTrigger::kRemote (2009 §3.1, "counters").
//
//     share of what a bubble reaches on other nodes, by intervals
//     ▁ ▁ ▅ ▁ ▁        once is no reason: a thread was elsewhere for a moment
//     ▁ ▁ ▅ ▅!▁ ▁      twice is: somebody looks, and it has helped
//     ▁ ▁ ▅ ▅!▅ ▅!▅ ▅ ▅ ▅!▅ …   it has not: asked again after 2, 4, … 64 intervals, until it falls or grows by a quarter
//
// Plain data, for one thread. Cost: O(log bubbles) for each bubble and interval, O(bubbles) for a new one.
#pragma once

#include <stdint.h>

#include "base/mapped_array.h"

namespace bosk::policies {

/// What the threads of a bubble reach in an interval, in any unit.
struct RemoteAmounts {
  double local = 0;
  double remote = 0;
};

/// Remote accesses as a part of all, from which on they count. Below it there is nothing to gain: it is decided by costs, and asked
/// less and less often where that does not help, so a low one costs little. One vector of one thread of eight is a tenth.
constexpr double kRemoteShare = 0.05;
constexpr uint32_t kRemoteIntervals = 2;
constexpr uint32_t kMostRemotePause = 64;

class RemoteWatch {
 public:
  /// Of the bubble of that name (not 0), in this interval. True: somebody is to look at it.
  bool note(uint64_t name, const RemoteAmounts& amounts);
  /// Nothing is known of it in this interval, and if it is known itself it is not forgotten.
  void keep(uint64_t name);
  /// The interval is over: bubbles that were not heard of are forgotten. True: in some of the others much is remote, or
  /// they are new.
  bool end_interval();
  void release() { known_.release(); }

 private:
  struct Known {
    uint64_t name;
    double asked_at;  ///< the share when somebody was asked last; 0: nobody was since it was small
    uint32_t interval;  ///< in which it was heard of last
    uint32_t in_a_row;  ///< intervals with much
    uint32_t pause;     ///< intervals, after somebody was asked
    uint32_t left_of_it;
  };

  Known* place_of(uint64_t name);
  Known* find(uint64_t name);

  base::MappedArray<Known> known_;  ///< in order of names
  uint32_t interval_ = 0;
  bool restless_ = false;
};

/// For the report.
struct RemoteCounts {
  const char* source = nullptr;  ///< null: nobody has watched
  uint64_t intervals = 0;
  uint64_t raised = 0;
  double last_share =
      0;  ///< of all bubbles together, in the last interval of which something is known
};
void note_remote_source(const char* source);
void note_remote_interval(uint64_t raised, const RemoteAmounts& all);
RemoteCounts remote_counts();

}  // namespace bosk::policies
