// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When accesses to other nodes are worth a decision.
#include "policies/memory/remote_watch.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using bosk::policies::kMostRemotePause;
using bosk::policies::RemoteAmounts;
using bosk::policies::RemoteWatch;

constexpr RemoteAmounts kNear = {97, 3};
constexpr RemoteAmounts kFar = {10, 90};
constexpr RemoteAmounts kUnknown = {0, 0};

struct Watched {
  RemoteWatch watch;
  ~Watched() { watch.release(); }

  /// Of one bubble, interval by interval: '!' where somebody was asked.
  std::string of(std::initializer_list<RemoteAmounts> intervals) {
    std::string text;
    for (const RemoteAmounts& amounts : intervals) {
      text += watch.note(7, amounts) ? '!' : '.';
      watch.end_interval();
    }
    return text;
  }
};

TEST(RemoteWatch, AsksAfterTwoIntervalsWithMuch) {
  EXPECT_EQ(Watched().of({kNear, kFar, kNear, kFar, kNear}), ".....");
  EXPECT_EQ(Watched().of({kNear, kFar, kFar, kNear, kNear, kFar, kFar}), "..!...!");
  // Intervals of which nothing is known neither help nor hurt.
  EXPECT_EQ(Watched().of({kFar, kUnknown, kFar, kNear}), "..!.");
  EXPECT_EQ(Watched().of({kUnknown, kUnknown, kUnknown}), "...");
}

TEST(RemoteWatch, KeepsThoseOfWhomNothingIsKnownForOnce) {
  Watched one;
  EXPECT_EQ(one.of({kFar}), ".");
  one.watch.keep(7);
  EXPECT_FALSE(one.watch.end_interval());
  EXPECT_EQ(one.of({kFar}), "!");
  // Who was never heard of is not made known by it, and who is not kept is forgotten.
  one.watch.keep(8);
  one.watch.end_interval();
  EXPECT_EQ(one.of({kFar, kFar}), ".!");
}

TEST(RemoteWatch, AThresholdThatIsSaid) {
  EXPECT_EQ(Watched().of({{96, 4}, {96, 4}, {96, 4}}), "...");
  EXPECT_EQ(Watched().of({{94, 6}, {94, 6}}), ".!");
}

TEST(RemoteWatch, AsksLessAndLessOftenWhereItDoesNotHelp) {
  Watched one;
  std::string text;
  for (int i = 0; i < 300; ++i) text += one.of({kFar});
  std::string expected = ".!";
  for (uint32_t pause = 1;; pause = pause < kMostRemotePause ? 2 * pause : pause) {
    expected += std::string(pause, '.') + '!';
    if (expected.size() >= text.size()) break;
  }
  EXPECT_EQ(text, expected.substr(0, text.size()));
  // It has helped: the next time is like the first.
  EXPECT_EQ(one.of({kNear, kFar, kFar}), "..!");
}

TEST(RemoteWatch, WhatIsLeftOrNewIsAQuestionOfItsOwn) {
  // After much has become half of it, and after half has become much.
  EXPECT_EQ(Watched().of({kFar, kFar, kFar, kFar, {55, 45}, {55, 45}}), ".!.!.!");
  EXPECT_EQ(Watched().of({{55, 45}, {55, 45}, {55, 45}, {55, 45}, {55, 45}, kFar, kFar}),
            ".!.!..!");
}

TEST(RemoteWatch, BubblesAreToldApartAndForgotten) {
  Watched all;
  RemoteWatch& watch = all.watch;
  for (uint64_t name : {30u, 10u, 20u}) EXPECT_FALSE(watch.note(name, kFar));
  EXPECT_TRUE(watch.end_interval());
  EXPECT_TRUE(watch.note(10, kFar));
  EXPECT_FALSE(watch.note(20, kNear));
  EXPECT_TRUE(watch.end_interval());
  // 30 was not heard of, and begins anew.
  EXPECT_FALSE(watch.note(20, kNear));
  EXPECT_FALSE(watch.note(30, kFar));
  EXPECT_TRUE(watch.end_interval());
  EXPECT_TRUE(watch.note(30, kFar));
  EXPECT_FALSE(watch.note(20, kNear));
  watch.end_interval();
  EXPECT_FALSE(watch.note(20, kNear));
  EXPECT_FALSE(watch.end_interval());  // quiet
}

TEST(RemoteWatch, IsCounted) {
  using namespace bosk::policies;
  const RemoteCounts before = remote_counts();
  note_remote_source("what the test says");
  note_remote_interval(2, {1, 3});
  note_remote_interval(0, kUnknown);
  const RemoteCounts now = remote_counts();
  EXPECT_STREQ(now.source, "what the test says");
  EXPECT_EQ(now.intervals - before.intervals, 2u);
  EXPECT_EQ(now.raised - before.raised, 2u);
  EXPECT_DOUBLE_EQ(now.last_share, 0.75);
}

}  // namespace
