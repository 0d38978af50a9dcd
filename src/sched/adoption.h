// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which other node has taken a team whole: what is left of it follows, and when it opens again that node need not wait before it does
// (2005 §3.3.3).
//
//     node 1 idles, waits (far_wait.h), takes all ghosts of A's team, or all its threads that wait; what runs follows at a tick
//     the next kLives times it is node 1's: idle workers there come at once; those at home take ghosts of it when there are none of other
//     teams, and its opener leaves them to node 1 for a while
//     then it is forgotten, and must be earned again; and at once when somebody at home has taken a ghost of it after all
//
// In a program whose parts are about equal nobody's wait ever ends, so no team is adopted. Where the load has become even
// after one was, somebody at home has nothing else to do, or its opener waits in vain, once.
//
// Who writes. All are relaxed atomics: thieves look at them before they claim, perhaps while the object is opened for another team, and
// nothing is published by them. adopted_by(), and forget() when a team is taken back, are called by who holds a ghost or a thread of it,
// before that ends (if several do, the last one counts); opens_again() and forget() by the opener while no ghost can be claimed. So
// takers may write beside each other, the opener never beside a taker.
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/distance.h"

namespace bosk::sched {

class Adoption {
 public:
  static constexpr uint32_t kLives = 8;

  /// May the PU's worker take ghosts and threads as if they were at home there?
  bool by(uint32_t pu) const { return reaches(adopter_.load(kRelaxed), pu); }
  /// The PUs of the node; kReachNobody: the team is at home.
  uint64_t adopter() const { return adopter_.load(kRelaxed); }
  bool is_known() const { return adopter() != kReachNobody; }

  /// And what else there is of it, or comes, is at home there, too, from now on.
  void adopted_by(uint64_t node_pus) {
    if (adopter_.exchange(node_pus, kRelaxed) == node_pus) {
      times_.fetch_add(1, kRelaxed);
    } else {
      times_.store(0, kRelaxed);
      lives_.store(0, kRelaxed);
    }
  }
  /// What waited of it elsewhere has been taken back; or another team opens, or this one somewhere else.
  void forget() { adopter_.store(kReachNobody, kRelaxed); }

  /// The same team opens. The node that has adopted it, when that is over, and has taken it whole most of the time; else kReachNobody.
  uint64_t opens_again() {
    if (lives_.fetch_add(1, kRelaxed) != kLives) return kReachNobody;
    const uint64_t node = adopter();
    forget();
    return 2 * times_.load(kRelaxed) > kLives ? node : kReachNobody;
  }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  std::atomic<uint64_t> adopter_{kReachNobody};
  std::atomic<uint32_t> times_{0};  ///< that it has taken the team whole since the first time
  std::atomic<uint32_t> lives_{0};  ///< openings since then
};

}  // namespace bosk::sched
