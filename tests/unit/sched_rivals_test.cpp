// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/rivals.h"

#include <gtest/gtest.h>

namespace {

using bosk::sched::Rivals;

constexpr uint64_t kUs = 3;  // cycles
constexpr uint64_t kDefault = 500 * kUs;

uint64_t poll(const Rivals& rivals, uint64_t at_us) {
  return rivals.poll(at_us * kUs, kDefault, kUs) / kUs;
}
void gap(Rivals& rivals, uint64_t at_us, uint64_t took_us) {
  rivals.note_gap(at_us * kUs, took_us * kUs, kUs);
}

TEST(Rivals, AreBelievedWhenTheyAreMetTwice) {
  Rivals rivals;
  gap(rivals, 1'000'000, 3'000);
  EXPECT_EQ(poll(rivals, 1'000'001), 500u);
  gap(rivals, 1'004'000, 3'000);
  EXPECT_EQ(poll(rivals, 1'004'001), bosk::sched::tuning::kPollBesideOthersUs);
  EXPECT_EQ(poll(rivals, 1'004'000 + bosk::sched::tuning::kFirstRivalsUs), 500u);
}

TEST(Rivals, ShortGapsAndSeldomOnesAreNobody) {
  Rivals rivals;
  for (uint64_t at = 1'000'000; at < 2'000'000; at += 1'000) gap(rivals, at, 150);
  for (uint64_t at = 2'000'000; at < 9'000'000; at += 100'000) gap(rivals, at, 5'000);
  EXPECT_EQ(poll(rivals, 9'000'000), 500u);
}

TEST(Rivals, WhoStayAreBelievedForLonger) {
  Rivals rivals;
  uint64_t at = 1'000'000;
  for (uint64_t pause = bosk::sched::tuning::kFirstRivalsUs;
       pause <= bosk::sched::tuning::kLongestRivalsUs; pause *= 2) {
    gap(rivals, at, 3'000);
    gap(rivals, at + 4'000, 3'000);
    // Soon after the last time one gap is enough.
    EXPECT_EQ(poll(rivals, at + pause - 1), bosk::sched::tuning::kPollBesideOthersUs);
    at += 4'000 + pause;
    EXPECT_EQ(poll(rivals, at), 500u);
  }
  // They have gone, and come again.
  at += 3 * bosk::sched::tuning::kLongestRivalsUs;
  gap(rivals, at, 3'000);
  gap(rivals, at + 4'000, 3'000);
  EXPECT_EQ(poll(rivals, at + 3'999 + bosk::sched::tuning::kFirstRivalsUs),
            bosk::sched::tuning::kPollBesideOthersUs);
  EXPECT_EQ(poll(rivals, at + 4'000 + bosk::sched::tuning::kFirstRivalsUs), 500u);
}

TEST(Rivals, WhereNoCpuIsFreeTheyAreBelievedAtOnceAndAskedForOnceAfterThat) {
  Rivals rivals;
  EXPECT_FALSE(rivals.may_have_gone(900'000 * kUs));  // nobody was ever here
  rivals.note_seen(1'000'000 * kUs, kUs);
  EXPECT_EQ(poll(rivals, 1'000'001), bosk::sched::tuning::kPollBesideOthersUs);
  EXPECT_FALSE(rivals.may_have_gone(1'000'001 * kUs));
  uint64_t at = 1'000'001 + bosk::sched::tuning::kFirstRivalsUs;
  EXPECT_TRUE(rivals.may_have_gone(at * kUs));
  EXPECT_FALSE(rivals.may_have_gone(at * kUs));
  // They are still here: for twice as long.
  rivals.note_seen(at * kUs, kUs);
  EXPECT_EQ(poll(rivals, at + 2 * bosk::sched::tuning::kFirstRivalsUs - 1),
            bosk::sched::tuning::kPollBesideOthersUs);
  at += 2 * bosk::sched::tuning::kFirstRivalsUs;
  EXPECT_EQ(poll(rivals, at), 500u);
  // Nobody came by in time: nothing is known of them any more.
  EXPECT_FALSE(rivals.may_have_gone((at + 4 * bosk::sched::tuning::kFirstRivalsUs) * kUs));
}

TEST(Rivals, WhoHasAskedForPollingHasIt) {
  Rivals rivals;
  gap(rivals, 1'000'000, 3'000);
  gap(rivals, 1'004'000, 3'000);
  constexpr uint64_t kActive = 1'000'000 * kUs, kPassive = 2 * kUs;
  EXPECT_EQ(rivals.poll(1'004'001 * kUs, kActive, kUs), kActive);
  EXPECT_EQ(rivals.poll(1'004'001 * kUs, kPassive, kUs), kPassive);
}

}  // namespace
