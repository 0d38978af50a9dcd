// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which other node has taken a team's ghosts whole: when the same team opens again that one need not wait before it does (2005 §3.3.3).
//
//     node 1 idles, waits (far_wait.h), takes all ghosts of A's team
//     the next kLives times they are node 1's as well as their own node's: its idle workers come at once
//     then it is forgotten, and must be earned again
//
// In a program whose parts are about equal nobody's wait ever ends, so no team is adopted. Where the load has become even
// after one was, workers of the adopting node may be missed at home for kLives openings at most.
//
// Who writes. Nodes are words of PUs (reach_of()), relaxed atomics: thieves look at them before they claim, perhaps while the object
// is opened for another team. taken_by() is called by who has claimed most of the ghosts, before any of these
// ends (if several have, the last one counts); the others by the opener while no ghost can be claimed.
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/distance.h"

namespace bosk::sched {

class Adoption {
 public:
  static constexpr uint32_t kLives = 8;

  /// May the PU's worker take ghosts as if they were at home there?
  bool by(uint32_t pu) const { return reaches(adopter_.load(kRelaxed), pu); }

  void taken_by(uint64_t node_pus) {
    taker_.store(node_pus, kRelaxed);
    if (node_pus == adopter_.load(kRelaxed)) times_.fetch_add(1, kRelaxed);
  }

  /// Is there anything that opens_again() would change?
  bool is_known() const { return taker_.load(kRelaxed) != kReachNobody; }
  /// The same team opens. The node that has adopted it, when that is over, and has taken it whole most of the time; else kReachNobody.
  uint64_t opens_again() {
    const uint64_t adopter = adopter_.load(kRelaxed);
    if (adopter == kReachNobody) {
      adopter_.store(taker_.load(kRelaxed), kRelaxed);
      times_.store(0, kRelaxed);
      lives_ = 0;
    } else if (++lives_ == kLives) {
      forget();
      if (2 * times_.load(kRelaxed) > kLives) return adopter;
    }
    return kReachNobody;
  }
  /// Another team opens, or this one somewhere else.
  void forget() {
    adopter_.store(kReachNobody, kRelaxed);
    taker_.store(kReachNobody, kRelaxed);
  }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  std::atomic<uint64_t> adopter_{kReachNobody};
  std::atomic<uint64_t> taker_{kReachNobody};
  std::atomic<uint32_t> times_{0};  ///< that the adopter has taken it whole
  uint32_t lives_ = 0;              ///< openings since it was adopted; the opener's
};

}  // namespace bosk::sched
