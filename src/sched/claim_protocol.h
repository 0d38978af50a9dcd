// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Claiming the ghosts of a team by index.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

/// Members `index` … `index + count - 1`; none if count is 0.
struct Claim {
  uint32_t index = 0;
  uint32_t count = 0;
  explicit operator bool() const { return count != 0; }
};

constexpr uint32_t kMaxTeam = (1u << 20) - 1;

/// The unclaimed ghosts of a team: one word {generation:24, next:20, count:20} in an object that is
/// type-stable (recycled for other teams, never returned to the allocator).
///
/// While next < count, the word changes only by the compare-exchange in claim(); so a claim that
/// succeeds is a claim on the team that is open *at that moment*, however old the thief's knowledge
/// of the object is, and no two claims overlap. A thief may therefore come with a stale pointer, but
/// must read the team's other fields only after its claim (or as at generation()). The generation
/// tells teams of one object apart. Should it wrap around between a thief's look and its exchange
/// (2^24 teams of one object), the claim is still a good one, on a team that was not looked at.
///
/// Who claimed reads the team's fields: they were written before open() (release), and every word
/// since then descends from that store by read-modify-writes, so an acquiring claim sees them. They
/// may be written again when all claimed members have been finished (JoinCount).
template <class A>
class ClaimWord {
 public:
  /// Opener, after it wrote the team's fields: members first … count - 1 can be claimed. The object's
  /// former team must be joined; its ghosts are then all claimed.
  void open(uint32_t count, uint32_t first) {
    // relaxed: nobody changes a word that has nothing to claim, and the opener has joined the former
    // team or was handed the object, so it cannot read an older one.
    const uint64_t generation = (word_.load(std::memory_order_relaxed) >> kGenerationShift) + 1;
    // release: publishes the team's fields to whoever claims.
    word_.store(generation << kGenerationShift | uint64_t{first} << kNextShift | count,
                std::memory_order_release);
  }

  /// Anybody: takes up to `most` consecutive members of whatever team is open now.
  Claim claim(uint32_t most) {
    // relaxed: a stale word only makes the exchange fail.
    return claim_seen(word_.load(std::memory_order_relaxed), most, false);
  }

  /// By who has claimed all that was left and run none of it: they can be claimed again.
  void give_back(Claim rest) {
    // relaxed: the caller's claim (or that of who handed it on, by a lock) was the word's last change.
    const uint64_t generation = (word_.load(std::memory_order_relaxed) >> kGenerationShift) + 1;
    // release: as in open(), whose release sequence ends here; the caller's claim has acquired it. The
    // new generation keeps exchanges from the time before from succeeding.
    word_.store(generation << kGenerationShift | uint64_t{rest.index} << kNextShift |
                    (rest.index + rest.count),
                std::memory_order_release);
  }

  /// For a thief that must know whose team it is before it takes anything:
  ///
  ///   generation(), look at the team, claim_of(that generation, …)
  ///
  /// If the claim succeeds, the look was at the team claimed from. What is looked at must be relaxed
  /// atomics, because a later team's opener may write them at the same time; then the claim fails.
  /// (The look cannot have been too new: the fields change only when the team is joined, and one of
  /// its members was still unclaimed. It cannot have been too old: generation() acquires open().)
  uint32_t generation() const {
    return static_cast<uint32_t>(word_.load(std::memory_order_acquire) >> kGenerationShift);
  }
  Claim claim_of(uint32_t generation, uint32_t most) {
    const uint64_t seen = word_.load(std::memory_order_relaxed);
    return seen >> kGenerationShift == generation ? claim_seen(seen, most, true) : Claim{};
  }

  /// Anybody: how many are unclaimed. A hint, except for the opener between open() and join.
  uint32_t left() const { return left_of(word_.load(std::memory_order_relaxed)); }

 private:
  static constexpr int kNextShift = 20;
  static constexpr int kGenerationShift = 40;

  Claim claim_seen(uint64_t seen, uint32_t most, bool same_team) {
    const uint64_t generation = seen >> kGenerationShift;
    for (;;) {
      const uint32_t unclaimed = left_of(seen);
      if (unclaimed == 0 || (same_team && seen >> kGenerationShift != generation)) return {};
      const uint32_t take = most < unclaimed ? most : unclaimed;
      // acquire: the team's fields are read next. Not release: the claimer has published nothing,
      // and the release sequence of open() goes on through the exchange all the same.
      if (word_.compare_exchange_weak(seen, seen + (uint64_t{take} << kNextShift),
                                      std::memory_order_acquire, std::memory_order_relaxed))
        return {next_of(seen), take};
    }
  }

  static uint32_t next_of(uint64_t word) { return (word >> kNextShift) & kMaxTeam; }
  static uint32_t left_of(uint64_t word) {
    const uint32_t count = word & kMaxTeam;
    const uint32_t next = next_of(word);
    return next < count ? count - next : 0;
  }

  typename A::template atomic<uint64_t> word_{0};
};

}  // namespace bosk::sched
