// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two-word count of children: its states, and who is told what.
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "omp/explicit_task_count.h"

namespace {

using namespace bosk::omp;

struct Counted {
  std::atomic<uint64_t> mine{0};
  std::atomic<uint64_t> others{0};
  std::atomic<uint32_t> waiter{0};
};

TEST(ChildCount, OwnerAndOthersAddUp) {
  Counted c;
  own_add(c.mine, 5 * kWholeChild);
  own_add(c.mine, -kWholeChild);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, kWholeChild).to_wake, 0u);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, kFinishedChild).to_wake, 0u);
  const uint64_t left = collect(c.mine, c.others);
  EXPECT_EQ(finished_half(left), 2u);
  EXPECT_EQ(left >> 32, 3u);
  EXPECT_EQ(c.others.load(), 0u);
  EXPECT_EQ(own_count(c.mine), left);
}

TEST(ChildCount, TaskwaitIsToldOnceWhenTheLastChildFinishes) {
  for (uint64_t children : {1u, 2u, 3u, 100000u}) {
    Counted c;
    own_add(c.mine, children * kWholeChild);
    c.waiter.store(9);
    start_waiting(c.mine, c.others, kWaitsForFinished);
    EXPECT_TRUE(owner_waits(c.others.load()));
    for (uint64_t i = 1; i < children; ++i)
      ASSERT_EQ(add_for_owner(c.others, c.waiter, i % 2 ? kWholeChild : kFinishedChild).to_wake,
                0u);
    EXPECT_EQ(add_for_owner(c.others, c.waiter, kFinishedChild).to_wake, 9u);
    // Descendants that end later do not concern a taskwait.
    EXPECT_EQ(add_for_owner(c.others, c.waiter, kEndedDescendants).to_wake, 0u);
    const uint64_t left = stop_waiting(c.mine, c.others, kWaitsForFinished);
    EXPECT_EQ(finished_half(left), 0u);
    EXPECT_EQ(left >> 32, (children - 1) / 2);
    EXPECT_EQ(c.others.load(), 0u);
  }
}

TEST(ChildCount, ABarrierIsToldWhenAllDescendantsHaveEnded) {
  Counted c;
  own_add(c.mine, 3 * kWholeChild);
  add_for_owner(c.others, c.waiter, kWholeChild);
  c.waiter.store(4);
  start_waiting(c.mine, c.others, kWaitsForAll);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, kFinishedChild).to_wake, 0u);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, kWholeChild).to_wake, 0u);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, kEndedDescendants).to_wake, 4u);
  EXPECT_EQ(stop_waiting(c.mine, c.others, kWaitsForAll), 0u);
}

TEST(ChildCount, WhatEndedBeforeTheWaitIsSeenByTheWaiter) {
  Counted c;
  own_add(c.mine, 2 * kWholeChild);
  add_for_owner(c.others, c.waiter, kWholeChild);
  add_for_owner(c.others, c.waiter, kWholeChild);
  EXPECT_EQ(start_waiting(c.mine, c.others, kWaitsForAll), kWaitsForAll);
  EXPECT_EQ(stop_waiting(c.mine, c.others, kWaitsForAll), 0u);
}

TEST(ChildCount, ZeroMeansAFinishedParentWhoseLastDescendantEnded) {
  Counted c;
  own_add(c.mine, 3 * kWholeChild);
  ASSERT_NE(add_for_owner(c.others, c.waiter, kFinishedChild).others, 0u);
  const uint64_t left = collect(c.mine, c.others);
  c.mine.store(0);
  c.others.fetch_sub(left);
  EXPECT_FALSE(owner_waits(c.others.load()));
  EXPECT_NE(add_for_owner(c.others, c.waiter, kEndedDescendants).others, 0u);
  EXPECT_NE(add_for_owner(c.others, c.waiter, kWholeChild).others, 0u);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, kWholeChild).others, 0u);
}

TEST(ChildCount, ExactlyOneOfManyThreadsEndsTheParent) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  for (int round = 0; round < 5; ++round) {
    Counted c;
    own_add(c.mine, uint64_t{kThreads} * kEach * kWholeChild);
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          if (i % 3 == 0) {
            if (add_for_owner(c.others, c.waiter, kFinishedChild).others == 0) ended.fetch_add(1);
            if (add_for_owner(c.others, c.waiter, kEndedDescendants).others == 0)
              ended.fetch_add(1);
          } else if (add_for_owner(c.others, c.waiter, kWholeChild).others == 0) {
            ended.fetch_add(1);
          }
        }
      });
    // The owner takes over what ended, from time to time, then finishes itself.
    for (int i = 0; i < 50; ++i) collect(c.mine, c.others);
    const uint64_t left = collect(c.mine, c.others);
    c.mine.store(0);
    if (left == 0)
      ended.fetch_add(1);
    else if (c.others.fetch_sub(left) == left)
      ended.fetch_add(1);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ended.load(), 1);
    EXPECT_EQ(c.others.load(), 0u);
  }
}

TEST(GroupCount, TasksAddedElsewhereCountToo) {
  Counted c;
  own_add(c.mine, 2);
  add_for_owner(c.others, c.waiter, uint64_t(-1));  // a descendant creates one
  c.waiter.store(3);
  EXPECT_EQ(collect(c.mine, c.others), 3u);
  start_waiting(c.mine, c.others, kWaitsForAll);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, uint64_t(-1)).to_wake, 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(add_for_owner(c.others, c.waiter, 1).to_wake, 0u);
  EXPECT_EQ(add_for_owner(c.others, c.waiter, 1).to_wake, 3u);
  EXPECT_EQ(stop_waiting(c.mine, c.others, kWaitsForAll), 0u);
}

}  // namespace
