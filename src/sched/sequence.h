// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bubbles whose members run one after another (Relation::kSequence, 2005 §3.1).
//
//     S( a b c )   burst ──▶ a comes out, b and c stay held
//                  a ends ──▶ b comes out on the queue where S burst
//
// Of an open sequence the first member that has not ended is out, or running, or blocked; all behind it
// are held. A thread has ended when it has left; a bubble inside when it has burst and all in it has
// ended, whether it has left or not. So whoever lets a member leave, takes one out, puts one in, or
// bursts an empty bubble, looks whether the next one has to come out.
//
// Who owns what: `whereabouts` of the members, guarded by the sequence's lock as in every bubble. Two
// who look at once find one of them that the member is out already. Locks: the queue where the sequence
// burst, the sequence, bubbles in it, in the order of bubble_tree.h.
#pragma once

#include "sched/bubble_tree.h"

namespace bosk::sched {

/// Has there ever been a sequence that was open? Programs without pay this look where others look for the next one.
/// Relaxed: noted before anything comes out of the sequence, so that who ends something in it sees it; who makes an
/// open bubble a sequence says so at that moment.
inline constinit std::atomic<bool> sequence_noted{false};
inline bool are_sequences() { return sequence_noted.load(std::memory_order_relaxed); }
inline void note_sequence() {
  if (!are_sequences()) sequence_noted.store(true, std::memory_order_relaxed);
}

/// Must this member stay held while the bubble bursts? The bubble is locked.
inline bool waits_for_others(const NestedBubble& bubble, const TreeEntity& member) {
  return bubble.relation == Relation::kSequence && bubble.first_member != &member;
}

/// Lets the next of an open sequence out if its turn has come. Returns the queue that it is on, null if
/// there is none. O(members that have ended and not left + 1).
RunQueue* advance(NestedBubble& sequence);

/// Something in the bubble has ended: lets the next of it, or of the sequences around it that it ends
/// by that, out. The bubbles around must not go away meanwhile, unless their records stay: of one that has
/// gone, or is another by now, nothing comes out that must not. O(depth) at most.
RunQueue* advance_around(NestedBubble& bubble);

}  // namespace bosk::sched
