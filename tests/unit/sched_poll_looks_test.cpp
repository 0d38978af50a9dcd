// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/poll_looks.h"

#include <gtest/gtest.h>

namespace bosk::sched {
namespace {

using Verdict = PollLooks::Verdict;

constexpr uintptr_t kPc = 0x401000;

TEST(SchedPollLooks, WhoIsTwiceInTheSameStatePolls) {
  PollLooks looks;
  Thread thread;
  EXPECT_EQ(looks.look(&thread, kPc, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&thread, kPc + 8, 2), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&thread, kPc, 1), Verdict::kPolls);
  // It begins anew.
  EXPECT_EQ(looks.look(&thread, kPc, 1), Verdict::kLookAgain);
}

TEST(SchedPollLooks, WhoIsElsewhereComputes) {
  PollLooks looks;
  Thread thread;
  EXPECT_EQ(looks.look(&thread, kPc, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&thread, kPc + 4096, 1), Verdict::kComputes);
}

TEST(SchedPollLooks, WhoAlwaysHasOtherValuesComputes) {
  PollLooks looks;
  Thread thread;
  Verdict verdict = Verdict::kLookAgain;
  int count = 0;
  for (; verdict == Verdict::kLookAgain; ++count)
    verdict = looks.look(&thread, kPc, static_cast<uint64_t>(count));
  EXPECT_EQ(verdict, Verdict::kComputes);
  EXPECT_EQ(count, 5);
}

TEST(SchedPollLooks, AnotherThreadIsLookedAtAnew) {
  PollLooks looks;
  Thread one;
  Thread other;
  EXPECT_EQ(looks.look(&one, kPc, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&other, kPc, 1), Verdict::kLookAgain);
  EXPECT_EQ(looks.look(&one, kPc, 1), Verdict::kLookAgain);
}

}  // namespace
}  // namespace bosk::sched
