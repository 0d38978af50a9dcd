// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/steal_pace.h"

#include <gtest/gtest.h>

namespace {

using bosk::omp::StealPace;

constexpr uint64_t kUs = 1000;  // cycles in a microsecond: one is a nanosecond

/// A thief that always finds something: `each` tasks of `work` ns a steal. What it does in a millisecond.
struct Outcome {
  uint64_t steals = 0;
  uint64_t longest_pause = 0;
};
Outcome a_millisecond(StealPace& pace, uint64_t& now, uint64_t& foreign, uint64_t price,
                      uint64_t work, uint64_t each) {
  Outcome outcome;
  uint64_t last = now;
  for (const uint64_t end = now + 1000 * kUs; now < end;) {
    if (pace.has_to_judge()) pace.judge(now, foreign);
    if (pace.pauses() && !pace.is_over(now)) {
      now += 100;
      continue;
    }
    if (outcome.steals != 0 && now - last > outcome.longest_pause)
      outcome.longest_pause = now - last;
    now += price;
    pace.stole(price, now, foreign);
    now += each * work;
    last = now;
    foreign += each;
    ++outcome.steals;
  }
  return outcome;
}

TEST(StealPace, TasksWorthTheWayAreStolenWithoutAPause) {
  StealPace pace(kUs);
  uint64_t now = 1, foreign = 0;
  const Outcome outcome = a_millisecond(pace, now, foreign, 100, 200, 1);
  EXPECT_GE(outcome.steals, 3300u);
  EXPECT_EQ(outcome.longest_pause, 0u);
}

TEST(StealPace, TasksThatAreNotAreStolenSeldom) {
  for (const uint64_t each : {1, 33}) {
    StealPace pace(kUs);
    uint64_t now = 1, foreign = 0;
    const Outcome outcome = a_millisecond(pace, now, foreign, 100, 50, each);
    EXPECT_LE(outcome.steals, 40u);
    EXPECT_GE(outcome.steals, 20u) << "it must come back";
    EXPECT_LE(outcome.longest_pause, 33 * kUs);
  }
}

TEST(StealPace, FarAwayTasksMustBeLarger) {
  StealPace pace(kUs);
  uint64_t now = 1, foreign = 0;
  EXPECT_LE(a_millisecond(pace, now, foreign, 900, 500, 1).steals, 40u);
  EXPECT_GE(a_millisecond(pace, now, foreign, 900, 1000, 1).steals, 400u);
}

TEST(StealPace, OneStolenTaskThatCreatesManyIsWorthIt) {
  StealPace pace(kUs);
  uint64_t now = 1;
  for (int i = 0; i < 10; ++i) {
    pace.stole(100, now, 7);
    now += 5 * kUs;
    pace.judge(now, 8);
    EXPECT_FALSE(pace.pauses());
  }
}

TEST(StealPace, ReturnsToFullSpeedAtOnce) {
  StealPace pace(kUs);
  uint64_t now = 1, foreign = 0;
  a_millisecond(pace, now, foreign, 100, 10, 1);
  EXPECT_TRUE(pace.pauses());
  const Outcome outcome = a_millisecond(pace, now, foreign, 100, 1000, 1);
  EXPECT_GE(outcome.steals, 870u);
}

TEST(StealPace, PatienceEnds) {
  StealPace pace(kUs);
  EXPECT_TRUE(pace.is_patient(1));
  EXPECT_TRUE(pace.is_patient(5 * kUs));
  EXPECT_FALSE(pace.is_patient(8 * kUs));
  // A new dry spell has its own.
  EXPECT_TRUE(pace.is_patient(9 * kUs));
  pace.found();
  EXPECT_TRUE(pace.is_patient(100 * kUs));
}

}  // namespace
