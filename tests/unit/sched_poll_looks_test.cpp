// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/poll_looks.h"

#include <gtest/gtest.h>

namespace bosk::sched {
namespace {

using Verdict = PollLooks::Verdict;

TEST(SchedPollLooks, WhoIsTwiceInTheSameStatePolls) {
  PollLooks looks;
  Thread thread;
  EXPECT_EQ(looks.look(&thread, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&thread, 2), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&thread, 1), Verdict::kPolls);
  // It begins anew.
  EXPECT_EQ(looks.look(&thread, 1), Verdict::kLookAgain);
}

TEST(SchedPollLooks, WhoAlwaysHasOtherValuesComputes) {
  PollLooks looks;
  Thread thread;
  Verdict verdict = Verdict::kLookAgain;
  uint32_t count = 0;
  for (; verdict == Verdict::kLookAgain; ++count) verdict = looks.look(&thread, count);
  EXPECT_EQ(verdict, Verdict::kComputes);
  EXPECT_EQ(count, PollLooks::kLooks);
}

TEST(SchedPollLooks, WhatItHasComeToDoSinceDoesNotCount) {
  PollLooks looks;
  Thread thread;
  for (uint64_t state = 1; state <= PollLooks::kFirst; ++state)
    EXPECT_EQ(looks.look(&thread, state), Verdict::kLookAgain);
  Verdict verdict = Verdict::kLookAgain;
  while (verdict == Verdict::kLookAgain) verdict = looks.look(&thread, 100);
  EXPECT_EQ(verdict, Verdict::kComputes);
}

TEST(SchedPollLooks, AnotherThreadIsLookedAtAnew) {
  PollLooks looks;
  Thread one;
  Thread other;
  EXPECT_EQ(looks.look(&one, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&other, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&one, 1), Verdict::kLookAgain);
}

}  // namespace
}  // namespace bosk::sched
