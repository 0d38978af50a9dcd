// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The work-stealing deque: order, growth, and nothing lost or given twice under thieves.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "base/atomics_policy.h"
#include "sched/task_deque.h"

namespace {

using bosk::sched::TaskDeque;
using Deque = TaskDeque<bosk::base::StdAtomics, int>;

bool any(int*) { return true; }

TEST(TaskDeque, EmptyGivesNothing) {
  Deque deque;
  EXPECT_EQ(deque.pop(), nullptr);
  EXPECT_EQ(deque.steal_if(any), nullptr);
  EXPECT_EQ(deque.size_hint(), 0);
}

TEST(TaskDeque, AgreesWithAPlainDequeOnRandomOperations) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Deque deque;
    std::deque<int*> model;
    std::vector<int> items(3000);
    size_t next = 0;
    for (int step = 0; step < 6000; ++step) {
      const unsigned choice = random() % 10;
      const unsigned bias = (round % 2 == 0) ? 6 : 4;
      if (choice < bias && next < items.size()) {
        items[next] = static_cast<int>(random() % 5);
        ASSERT_TRUE(deque.push(&items[next]));
        model.push_back(&items[next++]);
      } else if (choice < 8) {
        const auto even = [](const int* item) { return *item % 2 == 0; };
        int* expected = nullptr;
        if (!model.empty() && even(model.back())) {
          expected = model.back();
          model.pop_back();
        }
        ASSERT_EQ(deque.pop_if(even), expected);
      } else if (choice == 8) {
        int* expected = model.empty() ? nullptr : model.back();
        if (!model.empty()) model.pop_back();
        ASSERT_EQ(deque.pop(), expected);
      } else {
        const auto small = [](const int* item) { return *item < 4; };
        int* expected = nullptr;
        if (!model.empty() && small(model.front())) {
          expected = model.front();
          model.pop_front();
        }
        ASSERT_EQ(deque.steal_if(small), expected);
      }
      ASSERT_EQ(deque.size_hint(), static_cast<int64_t>(model.size()));
      ASSERT_GE(deque.size_bound(), static_cast<int64_t>(model.size()));
    }
  }
}

TEST(TaskDeque, EveryItemLeavesExactlyOnceUnderThieves) {
  constexpr int kItems = 60000;
  constexpr int kThieves = 3;
  Deque deque;
  std::vector<int> items(kItems);
  std::vector<std::atomic<int>> taken(kItems);
  std::atomic<bool> done{false};
  std::atomic<int> total{0};
  const auto take = [&](int* item) {
    // Written by the owner before the push: the deque has to order it.
    EXPECT_EQ(*item, static_cast<int>(item - items.data()) + 1);
    taken[item - items.data()].fetch_add(1);
    total.fetch_add(1);
  };
  std::vector<std::thread> thieves;
  for (int i = 0; i < kThieves; ++i)
    thieves.emplace_back([&] {
      while (!done.load() || deque.size_hint() != 0)
        if (int* item = deque.steal_if(any)) take(item);
    });
  std::mt19937 random(3);
  for (int i = 0; i < kItems; ++i) {
    items[i] = i + 1;
    ASSERT_TRUE(deque.push(&items[i]));
    // Often down to the last item: that is where owner and thieves meet.
    if (random() % 3 != 0)
      for (unsigned n = random() % 3; n > 0; --n)
        if (int* item = deque.pop()) take(item);
  }
  while (int* item = deque.pop()) take(item);
  done.store(true);
  for (std::thread& thief : thieves) thief.join();
  EXPECT_EQ(total.load(), kItems);
  for (int i = 0; i < kItems; ++i) ASSERT_EQ(taken[i].load(), 1) << i;
}

}  // namespace
