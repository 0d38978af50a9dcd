// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bubble that was closed because its threads are to go to their memory: each of them has been told where
// (Figures::wake_domain), and when the bubble opens again that is carried out.
//
//     decided for all ─▶ told ─▶ closed ─┬─ back in it when it opens: placed where it was told
//                                        └─ blocked, or comes later:  goes there when it wakes
//
// Deciding once more when it opens would be deciding for those that happen to be back: the others' load counts where they
// were, nothing draws a bubble in which nobody is, and who wakes while it is closed on some queue comes out there. So
// half of the threads would go where the whole has not been thought to be.
//
// Both notes are bits beside the count in Evolution::memory_moves. Relaxed: `decided` is set by who closes the bubble, in
// whose hand it is, and read by who has it in hand next; a hint that comes late is looked for after the bubble has been
// placed, by way of a lock that both take (threads/memory_mover.cpp).
#pragma once

#include "policies/engine.h"

namespace bosk::policies {

constexpr uint32_t kMoves = 0xff;  ///< how often in a row it has moved for its memory
constexpr uint32_t kDecided = 1u << 30;
constexpr uint32_t kLateHint = 1u << 31;

inline bool has_note(const sched::NestedBubble& bubble, uint32_t note) {
  return (bubble.evolution.memory_moves.load(std::memory_order_relaxed) & note) != 0;
}
inline void set_note(sched::NestedBubble& bubble, uint32_t note) {
  bubble.evolution.memory_moves.fetch_or(note, std::memory_order_relaxed);
}
inline bool take_note(sched::NestedBubble& bubble, uint32_t note) {
  return has_note(bubble, note) &&
         (bubble.evolution.memory_moves.fetch_and(~note, std::memory_order_relaxed) & note) != 0;
}

/// The work is that of a bubble in hand, found on `domain`. If it was decided where its threads go, that is the answer, and
/// `area` of a bubble the smallest domain around all of them, there or not. False: the policy is to be asked; nothing is in
/// the answer, and all areas are kNone.
bool answer_as_decided(const topology::Machine& machine, WorkScratch& s, uint32_t domain);

}  // namespace bosk::policies
