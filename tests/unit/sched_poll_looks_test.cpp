// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/poll_looks.h"

#include <gtest/gtest.h>

#include "base/cpu.h"
#include "sched/tuning.h"

namespace bosk::sched {
namespace {

using Verdict = PollLooks::Verdict;

/// Looks with ticks that take `least` cycles from one to the next.
class Looks {
 public:
  explicit Looks(uint64_t least) : least_(least) {}

  /// The thread is in that state, when the tick has come that the last look asked for.
  Verdict at(const Thread& thread, uint64_t state) {
    for (;;) {
      const Verdict verdict = looks_.look(&thread, state, now_);
      if (verdict != Verdict::kLookAgain) return verdict;
      pause_ = looks_.end_look(now_);
      const uint64_t asked = pause_ * base::cycles_per_microsecond() / 1000;
      now_ += asked > least_ ? asked : least_;
      // It comes for the gap.
      if (pause_ != 0) return verdict;
    }
  }
  uint64_t pause() const { return pause_; }

 private:
  PollLooks looks_;
  uint64_t least_;
  uint64_t now_ = 1'000'000;
  uint64_t pause_ = 0;
};

const uint64_t kFast = 3 * base::cycles_per_microsecond();

TEST(SchedPollLooks, WhoComesBackToAStatePolls) {
  Looks looks(kFast);
  Thread thread;
  EXPECT_EQ(looks.at(thread, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.at(thread, 2), Verdict::kLookAgain);
  EXPECT_EQ(looks.at(thread, 1), Verdict::kPolls);
  // It begins anew.
  EXPECT_EQ(looks.at(thread, 1), Verdict::kLookAgain);
}

TEST(SchedPollLooks, WhoStaysInAStatePollsIfItHadTimeForAnother) {
  Looks looks(kFast);
  Thread thread;
  EXPECT_EQ(looks.at(thread, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.at(thread, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.at(thread, 1), Verdict::kPolls);
}

TEST(SchedPollLooks, LooksAreFurtherApartWhereTicksTakeLonger) {
  Looks fast(kFast);
  Looks slow(100 * base::cycles_per_microsecond());
  Thread thread;
  fast.at(thread, 1);
  slow.at(thread, 1);
  EXPECT_EQ(fast.pause(), tuning::kBetweenLooksNs);
  EXPECT_EQ(slow.pause(), 600'000u);
}

TEST(SchedPollLooks, WhoHadNoTimeForAnythingComputes) {
  PollLooks looks;
  Thread thread;
  // Ticks that follow each other as fast as they can, whatever is asked for.
  const uint64_t gap = 50 * base::cycles_per_microsecond();
  uint64_t now = 1'000'000;
  Verdict verdict = Verdict::kLookAgain;
  while (verdict == Verdict::kLookAgain) {
    verdict = looks.look(&thread, 1, now);
    looks.end_look(now);
    now += gap;
  }
  EXPECT_EQ(verdict, Verdict::kComputes);
}

TEST(SchedPollLooks, LooksMayComeWithOrdinaryTicks) {
  PollLooks looks;
  Thread thread;
  uint64_t now = 1'000'000;
  Verdict verdict = Verdict::kLookAgain;
  for (int count = 0; verdict == Verdict::kLookAgain && count < 10; ++count) {
    verdict = looks.look(&thread, 1, now);
    looks.end_look(now);
    looks.leave_to_ticks();
    now += 10'000 * base::cycles_per_microsecond();
  }
  EXPECT_EQ(verdict, Verdict::kPolls);
}

TEST(SchedPollLooks, WhoAlwaysHasOtherValuesComputes) {
  Looks looks(kFast);
  Thread thread;
  Verdict verdict = Verdict::kLookAgain;
  uint32_t count = 0;
  for (; verdict == Verdict::kLookAgain; ++count) verdict = looks.at(thread, count);
  EXPECT_EQ(verdict, Verdict::kComputes);
  EXPECT_EQ(count, PollLooks::kLooks);
}

TEST(SchedPollLooks, WhatItHasComeToDoSinceDoesNotCount) {
  Looks looks(kFast);
  Thread thread;
  for (uint64_t state = 1; state <= PollLooks::kFirst; ++state)
    EXPECT_EQ(looks.at(thread, state), Verdict::kLookAgain);
  Verdict verdict = Verdict::kLookAgain;
  while (verdict == Verdict::kLookAgain) verdict = looks.at(thread, 100);
  EXPECT_EQ(verdict, Verdict::kComputes);
}

TEST(SchedPollLooks, AnotherThreadIsLookedAtAnew) {
  Looks looks(kFast);
  Thread one;
  Thread other;
  EXPECT_EQ(looks.at(one, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.at(other, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.at(one, 1), Verdict::kLookAgain);
}

}  // namespace
}  // namespace bosk::sched
