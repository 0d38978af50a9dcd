// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a bubble opens and closes: its state, the members it waits for, and the ghosts it holds.
#pragma once

#include <stdint.h>

#include "sched/claim_protocol.h"

namespace bosk::sched {

/// Where an entity is as far as its bubble knows.
enum class Whereabouts : uint8_t {
  kOut,      ///< on last_queue, or nowhere: it runs, is blocked, or (a bubble) burst or is handled
  kHeld,     ///< in the bubble
  kAwaited,  ///< out, and the closing bubble waits for it
};

enum class BubbleState : uint8_t {
  kClosed,   ///< holds its members (except those that are blocked, or run and were inserted so)
  kInHand,   ///< a worker is deciding about it, or walks through it: membership only grows
  kBurst,    ///< its members are out
  kClosing,  ///< takes them back; `awaited` are still missing
};

/// The part of a bubble that regeneration is about (2005 §4). Everything is guarded by the bubble's
/// lock, except that a claim word is everybody's: thieves take ghosts without any lock.
///
/// *Awaited* are members that run: they can be had back, because whoever runs them requeues them
/// sooner or later. Who is not, for then the bubble might wait for ever:
/// - a member that is blocked. What it waits for may be for another member to do, which the bubble
///   holds already. It comes back when it is woken.
/// - a ghost that was claimed. It is a call on somebody's stack and cannot be put back; and it may
///   wait, in a barrier, for ghosts that the bubble holds. It runs to its end.
///
/// Ghosts that nobody has claimed stay in: who closes the bubble claims them all, which takes the
/// word away from thieves that still know of it, and who opens it gives them back. So a thief needs
/// no new check, and what a policy counts while the bubble is in its hand stays true.
template <class A>
struct Regeneration {
  template <class T>
  using Plain = typename A::template plain<T>;

  Plain<BubbleState> state{BubbleState::kClosed};
  Plain<uint32_t> awaited{0};
  Plain<uint32_t> first_held_ghost{0};
  Plain<uint32_t> held_ghosts{0};

  bool take_in_hand() {
    if (state != BubbleState::kClosed) return false;
    state = BubbleState::kInHand;
    return true;
  }
  /// By who has it in hand: what it still holds is about to be let out. Null: it has no ghosts.
  void open(ClaimWord<A>* ghosts) {
    state = BubbleState::kBurst;
    give_ghosts_back(ghosts);
  }
  void give_ghosts_back(ClaimWord<A>* ghosts) {
    if (held_ghosts == 0) return;
    ghosts->give_back({first_held_ghost, held_ghosts});
    held_ghosts = 0;
  }

  /// False: it is not open. Then the members are taken back one by one, by hold() or await(), and
  /// end_closing() says how it ended.
  bool begin_closing(ClaimWord<A>* ghosts) {
    if (state != BubbleState::kBurst) return false;
    state = BubbleState::kInHand;
    awaited = 0;
    hold_ghosts(ghosts);
    return true;
  }
  void hold_ghosts(ClaimWord<A>* ghosts) {
    if (ghosts == nullptr) return;
    const Claim rest = ghosts->claim(kMaxTeam);
    if (!rest) return;
    first_held_ghost = rest.index;
    held_ghosts = rest.count;
  }
  void await(Plain<Whereabouts>& member) {
    member = Whereabouts::kAwaited;
    awaited = awaited + 1;
  }
  /// All members were looked at. True: it is closed.
  bool end_closing() {
    state = awaited == 0 ? BubbleState::kClosed : BubbleState::kClosing;
    return awaited == 0;
  }

  /// The member is in the bubble. True: the bubble is closed by that, and the caller's to put.
  bool hold(Plain<Whereabouts>& member) {
    const bool was_awaited = member == Whereabouts::kAwaited;
    member = Whereabouts::kHeld;
    return was_awaited && one_less();
  }
  /// The member blocks, or belongs to the bubble no longer. True: as for hold().
  bool let_go(Plain<Whereabouts>& member) {
    const bool was_awaited = member == Whereabouts::kAwaited;
    member = Whereabouts::kOut;
    return was_awaited && one_less();
  }

 private:
  bool one_less() {
    awaited = awaited - 1;
    if (awaited != 0 || state != BubbleState::kClosing) return false;
    state = BubbleState::kClosed;
    return true;
  }
};

}  // namespace bosk::sched
