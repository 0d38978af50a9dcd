// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queue of deadlines, against a sorted model; and waits that end by the clock.
#include "sched/deadline_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

#include "omp/team.h"
#include "sched/address_wait.h"
#include "sched/clock.h"

namespace bosk::sched {
namespace {

TEST(DeadlineQueue, IsInOrderWhateverIsInsertedAndRemoved) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    DeadlineQueue queue;
    std::vector<Deadline> nodes(400);
    std::multimap<uint64_t, Deadline*> model;
    std::vector<Deadline*> idle;
    for (Deadline& node : nodes) idle.push_back(&node);
    const uint64_t range = round % 2 != 0 ? 1000 : 20;  // many equal ones
    for (int step = 0; step < 4000; ++step) {
      const unsigned what = random() % 5;
      if (what < 3 && !idle.empty()) {
        Deadline* node = idle.back();
        idle.pop_back();
        node->at = random() % range;
        const bool earliest = model.empty() || node->at < model.begin()->first;
        const bool said = queue.insert(node);
        ASSERT_TRUE(said || !earliest);
        model.emplace(node->at, node);
      } else if (!model.empty()) {
        auto which = model.begin();
        if (what == 3) std::advance(which, random() % model.size());
        Deadline* node = what == 3 ? which->second : queue.first();
        if (what != 3) {
          auto [from, to] = model.equal_range(node->at);
          for (which = from; which->second != node; ++which) ASSERT_NE(which, to);
        }
        queue.remove(node);
        ASSERT_FALSE(node->queued);
        model.erase(which);
        idle.push_back(node);
      }
      if (model.empty())
        ASSERT_EQ(queue.first(), nullptr);
      else
        ASSERT_EQ(queue.first()->at, model.begin()->first);
    }
  }
}

class Clock : public ::testing::Test {
 protected:
  void SetUp() override { omp::attach_thread(); }
};

TEST_F(Clock, AWaitEndsAtItsDeadlineAndNotBefore) {
  const std::atomic<uint32_t> word{0};
  const uint64_t deadline = clock_now() + 5'000'000;
  WaitEnd end;
  while ((end = wait_on_until(word, 0, deadline)) == WaitEnd::kWoken) {
  }
  EXPECT_EQ(end, WaitEnd::kTimedOut);
  EXPECT_GE(clock_now(), deadline);
}

TEST_F(Clock, AWordThatHasChangedIsNotWaitedForEvenTooLate) {
  const std::atomic<uint32_t> word{1};
  EXPECT_EQ(wait_on_until(word, 0, 0), WaitEnd::kWoken);
  EXPECT_EQ(wait_on_until(word, 1, 0), WaitEnd::kTimedOut);
}

TEST_F(Clock, AWakeUpEndsAWaitThatHasTime) {
  std::atomic<uint32_t> word{0};
  std::thread other([&] {
    omp::attach_thread();
    word.store(1);
    wake(word, 1);
  });
  WaitEnd end = WaitEnd::kWoken;
  while (word.load() == 0) end = wait_on_until(word, 0, clock_now() + 60'000'000'000u);
  EXPECT_EQ(end, WaitEnd::kWoken);
  other.join();
}

TEST_F(Clock, DeadlinesOfManyThreadsEachEndTheirOwnWait) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      omp::attach_thread();
      const std::atomic<uint32_t> word{0};
      for (int i = 0; i < 20; ++i) {
        const uint64_t deadline = clock_now() + static_cast<uint64_t>((t * 7 + i) % 5) * 100'000;
        while (wait_on_until(word, 0, deadline) == WaitEnd::kWoken) {
        }
        if (clock_now() >= deadline) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 8 * 20);
}

TEST(TimeLeft, SaysWhatTheKernelCanSleep) {
  timespec left;
  EXPECT_FALSE(time_left(0, &left));
  ASSERT_TRUE(time_left(clock_now() + 2'500'000'000u, &left));
  EXPECT_LE(left.tv_sec, 2);
  EXPECT_LT(left.tv_nsec, 1'000'000'000);
  ASSERT_TRUE(time_left(UINT64_MAX - 1, &left));
  EXPECT_GT(left.tv_sec, 0);
}

}  // namespace
}  // namespace bosk::sched
