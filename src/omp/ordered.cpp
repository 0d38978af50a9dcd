// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ordered regions.
#include "omp/ordered.h"

#include <bit>
#include <new>

#include "omp/loop.h"
#include "omp/ordered_wait.h"

namespace bosk::omp {
namespace {

using TurnWord = std::atomic<uint32_t>;

/// The word of chunk `ticket`: equal to the ticket (32 bits of it) as soon as its turn has come. What
/// it held before was for a chunk a whole ring earlier, so it cannot be equal by chance.
TurnWord& turn_word(const WorkShare& share, uint64_t ticket) {
  return static_cast<TurnWord*>(share.turns.at)[ticket & share.turns_mask];
}

void await_turn(ImplicitTask* member, WorkShare& share) {
  const uint64_t ticket = member->loop_state[kTicket];
  TurnWord& word = turn_word(share, ticket);
  await_change(member->team, word, [&word, ticket] {
    // acquire pairs with the exchange in ordered_pass(): this ordered region comes after all before.
    return word.load(std::memory_order_acquire) == static_cast<uint32_t>(ticket);
  });
}

uint64_t holding_kind(const ImplicitTask* member) {
  return member->loop_state[kHolding] & kHoldingKind;
}

}  // namespace

void ordered_prepare(WorkShare& share) {
  const uint32_t ring = std::bit_ceil(share.size);
  auto* words = static_cast<TurnWord*>(reserve(share.turns, ring * sizeof(TurnWord)));
  for (uint32_t i = 0; i < ring; ++i) new (words + i) TurnWord(i - ring);
  words[0].store(0, std::memory_order_relaxed);
  share.turns_mask = ring - 1;
  share.ordered = true;
}

void ordered_enter(ImplicitTask* member) {
  if (holding_kind(member) != kHoldingChunk) return;
  await_turn(member, *member->workshare);
  member->loop_state[kHolding] += kHoldingTurn - kHoldingChunk;
}

void ordered_leave(ImplicitTask* member) {
  // An iteration meets one ordered region at most: if it was the chunk's only iteration, the next
  // chunk need not wait for the rest of it.
  if (member->loop_state[kHolding] == (kHoldingTurn | kOneIteration)) {
    ordered_pass(member, *member->workshare);
  }
}

void ordered_pass(ImplicitTask* member, WorkShare& share) {
  if (holding_kind(member) == kHoldingChunk) await_turn(member, share);
  const uint64_t next = member->loop_state[kTicket] + 1;
  member->loop_state[kHolding] = kHoldingNothing;
  TurnWord& word = turn_word(share, next);
  // release: what this chunk's ordered regions did; seq_cst because wake_after_rmw() asks for it.
  // One at most waits on the word. In a cancelled region the turn may be passed too early, to
  // members that do not wait for it any more.
  word.exchange(static_cast<uint32_t>(next), std::memory_order_seq_cst);
  signal_change(member->team, word, 1);
}

}  // namespace bosk::omp
