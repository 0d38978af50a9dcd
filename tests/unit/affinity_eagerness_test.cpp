// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/eagerness.h"

#include <gtest/gtest.h>

#include <random>

#include "affinity/observer/account.h"

namespace bosk::affinity {
namespace {

constexpr uint32_t kThreads = 8;
constexpr double kSecond = 1000 * kMillisecond;

/// A program of threads that write to pages of their own and of one other thread.
class EagernessTest : public testing::Test {
 protected:
  static NodeOfCpu one_node() {
    NodeOfCpu nodes;
    nodes.of.assign(kThreads, 0);
    return nodes;
  }
  /// Half a second: each thread writes so often, a quarter of it with the thread that is `with` away; 0: with any.
  void run(int writes, uint32_t with, uint32_t threads = kThreads) {
    for (int i = 0; i < writes; ++i)
      for (uint32_t me = 0; me < threads; ++me) {
        const uint32_t other = with == 0 ? static_cast<uint32_t>(random_()) : me + with;
        const uint32_t block = random_() % 4 == 0 ? other % threads : me;
        const uint64_t page = block * 64 + random_() % 64;
        learner_.add({0, page * 4096, 1000 + me, 0, static_cast<uint16_t>(me % kThreads),
                      AccessKind::kWrite});
      }
    now_ += kSecond / 2;
    part_ = eagerness_.part(now_);
  }

  Learner learner_{one_node()};
  Eagerness eagerness_{&learner_};
  std::minstd_rand random_{1};
  double now_ = kSecond;
  double part_ = 0;
};

TEST_F(EagernessTest, WhoDoesWhatItDidIsLookedAtLess) {
  run(600, 1);
  EXPECT_EQ(part_, 1);
  for (int i = 0; i < 2; ++i) run(600, 1);
  EXPECT_EQ(part_, .5);
  run(600, 1);
  EXPECT_EQ(part_, .25);
  run(600, 1);
  EXPECT_EQ(part_, .125);
  for (int i = 0; i < 100; ++i) {
    run(50, 1);
    EXPECT_EQ(part_, .125);
  }
}

TEST_F(EagernessTest, WhoSharesOtherwiseIsSeenWithinTwoSeconds) {
  for (uint32_t with = 2; with < 5; ++with) {
    for (int i = 0; i < 20; ++i) run(300, with - 1);
    EXPECT_EQ(part_, .125) << with;
    for (int i = 0; i < 4; ++i) run(75, with);
    EXPECT_EQ(part_, 1) << with;
  }
}

TEST_F(EagernessTest, WithoutStructureNothingIsNews) {
  for (int i = 0; i < 20; ++i) run(300, 0);
  for (int i = 0; i < 200; ++i) {
    run(75, 0);
    EXPECT_EQ(part_, .125) << i;
  }
}

TEST_F(EagernessTest, FewSamplesAreNotEnough) {
  for (int i = 0; i < 40; ++i) run(10, 1);
  EXPECT_EQ(part_, 1);
}

TEST_F(EagernessTest, WhatIsMovedOrNewIsNews) {
  for (int i = 0; i < 20; ++i) run(300, 1);
  EXPECT_EQ(part_, .125);
  eagerness_.news(now_);
  EXPECT_EQ(eagerness_.part(now_), 1);
  for (int i = 0; i < 20; ++i) run(300, 1);
  EXPECT_EQ(part_, .125);
  run(300, 1, 2 * kThreads);
  run(300, 1, 2 * kThreads);
  EXPECT_EQ(part_, 1);
}

}  // namespace
}  // namespace bosk::affinity
