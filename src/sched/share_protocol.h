// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A worker's share of a big team's ghosts: taken from the claim word in one go, left for all to take.
#pragma once

#include <stdint.h>

#include <atomic>

#include "sched/claim_protocol.h"

namespace bosk::sched {

/// Workers that claim ghost by ghost from one word spend their time on its cache line. So each takes a
/// part of them at a time into its own share and goes on from there; but the ghosts in a share belong to
/// nobody yet: whoever looks for work may take them, one by one, while its worker is held up in a member.
///
/// One word {generation:44, next:10, count:10}, and what the indices are counted from. Only the owner
/// opens a share, and only when nothing is left in it; everybody takes by compare-exchange.
///
/// Why it is right. Of one generation each index is taken once, for the word changes only by the
/// compare-exchange in take() until nothing is left, and a take() that succeeds is one on the generation
/// that was looked at. What a look says of the team and the base is of that generation, too: not older, for
/// look() acquires open(); not newer, for the owner writes them after it saw the last take (acquire, and
/// take() releases), and no take succeeds after that. So the team is known before anything is taken, and
/// from then on a member of it is missing that only the taker can finish: it cannot be recycled. The
/// generation does not wrap around (2^44 openings).
template <class A, class Team>
class GhostShare {
 public:
  static constexpr uint32_t kMost = (1u << 10) - 1;

  /// What there was to take; converts to false if nothing.
  struct Look {
    Team* team = nullptr;
    uint32_t base = 0;
    uint64_t word = 0;
    explicit operator bool() const { return team != nullptr; }
  };

  /// Anybody.
  Look look() const {
    // acquire: the team and the base, and by way of the owner's claim the team's fields.
    const uint64_t seen = word_.load(std::memory_order_acquire);
    if (left_of(seen) == 0) return {};
    return {team_.load(std::memory_order_relaxed), base_.load(std::memory_order_relaxed), seen};
  }

  /// Anybody: the next ghost, if nobody else took one since the look.
  Claim take(const Look& look) {
    uint64_t seen = look.word;
    // release: what was looked at was read before the owner may write it. look() has acquired.
    if (!word_.compare_exchange_strong(seen, seen + kNext, std::memory_order_release,
                                       std::memory_order_relaxed))
      return {};
    return {look.base + next_of(look.word), 1};
  }

  /// Anybody: the next ghost of this team, if the share is one of it.
  Claim take_of(const Team* team) {
    for (;;) {
      const Look seen = look();
      if (seen.team != team || !seen) return {};
      if (const Claim claim = take(seen)) return claim;
    }
  }

  /// Its owner, with a claim of its own, if nothing is left in the share.
  void open(Team* team, const Claim& part) {
    team_.store(team, std::memory_order_relaxed);
    base_.store(part.index, std::memory_order_relaxed);
    const uint64_t generation = (word_.load(std::memory_order_relaxed) >> kGenerationShift) + 1;
    // release: the team and the base, and the team's fields, which the claim acquired.
    word_.store(generation << kGenerationShift | part.count, std::memory_order_release);
  }

  /// The owner: may it be opened? For others a hint.
  bool empty() const {
    // acquire: see take().
    return left_of(word_.load(std::memory_order_acquire)) == 0;
  }

 private:
  static constexpr int kNextShift = 10;
  static constexpr int kGenerationShift = 20;
  static constexpr uint64_t kNext = uint64_t{1} << kNextShift;

  static uint32_t next_of(uint64_t word) { return (word >> kNextShift) & kMost; }
  static uint32_t left_of(uint64_t word) { return (word & kMost) - next_of(word); }

  typename A::template atomic<uint64_t> word_{0};
  typename A::template atomic<Team*> team_{nullptr};
  typename A::template atomic<uint32_t> base_{0};
};

}  // namespace bosk::sched
