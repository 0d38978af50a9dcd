// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams with memory that another node takes again and again resettle there, and their memory comes along (2005 §3.3.3, 2009 §3.2).
//
//     at home, others kept off ── kLeastPeace openings ──▶ the door is open for kDoorOpen openings
//            ▲                                                  │ nobody takes it whole:        ──▶ shut, peace twice as long
//            │                                                  ▼ an idle node does, mostly, kLives times (sched/adoption.h)
//            └── at home there, peace twice as long ◀── the memory comes along, where that pays, or is there
//
// The first to take a team whole leaves its memory behind: so others are kept off, and let in to try only now and then. What it
// costs to be wrong is bounded: in the end the door is open for less than one of a hundred openings, and memory moves in one of a thousand. It
// never stays shut: who has much to do may have it later.
//
// Pure: written by the opener of the place's teams alone, of whom there is one at a time.
#pragma once

#include <stdint.h>

#include "sched/adoption.h"

namespace bosk::omp {

class Resettlement {
 public:
  static constexpr uint32_t kLeastPeace = 16;
  static constexpr uint32_t kMostPeace = 1024;
  static constexpr uint32_t kDoorOpen = sched::Adoption::kLives;
  static constexpr uint32_t kWithOpener = UINT32_MAX;

  /// A PU of the node on which the members are at home but for their opener, who is on `opener_node`; kWithOpener: where he is. One who is
  /// somewhere else than he was goes by himself again.
  uint32_t pu_for(uint32_t opener_node) {
    if (opener_node != opener_node_) pu_ = kWithOpener;
    opener_node_ = opener_node;
    return pu_;
  }
  /// Most of it has been taken for long to that node, of which `pu` is one, and its memory is there.
  void settle(uint32_t node, uint32_t pu) {
    pu_ = node == opener_node_ ? kWithOpener : pu;
    shut();
  }

  bool lets_in() const { return since_ >= peace_; }
  /// The same team opens again; `adopted`: another node takes it at present. True: lets_in() has changed.
  bool opens_again(bool adopted) {
    const bool before = lets_in();
    if (!before || !adopted) ++since_;
    if (since_ >= peace_ + kDoorOpen) shut();
    return lets_in() != before;
  }

 private:
  void shut() {
    since_ = 0;
    peace_ = peace_ < kMostPeace / 2 ? 2 * peace_ : kMostPeace;
  }

  uint32_t opener_node_ = kWithOpener;
  uint32_t pu_ = kWithOpener;
  uint32_t since_ = 0;            ///< openings
  uint32_t peace_ = kLeastPeace;  ///< until the door opens
};

}  // namespace bosk::omp
