// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// taskloop: iteration counts at the edges of the types, and how iterations are spread.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "omp/taskloop.h"

namespace {

using namespace bosk::omp;

uint64_t count_signed(int64_t start, int64_t end, int64_t step) {
  return taskloop_iterations({static_cast<uint64_t>(start), static_cast<uint64_t>(end),
                              static_cast<uint64_t>(step), step > 0},
                             true);
}

uint64_t count_unsigned(uint64_t start, uint64_t end, uint64_t step, bool up) {
  return taskloop_iterations({start, end, up ? step : -step, up}, false);
}

TEST(TaskLoop, CountsAsALoopDoes) {
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    const int start = static_cast<int>(random() % 400) - 200;
    const int end = static_cast<int>(random() % 400) - 200;
    const int step = static_cast<int>(random() % 9) + 1;
    uint64_t up = 0;
    uint64_t down = 0;
    for (int k = start; k < end; k += step) ++up;
    for (int k = start; k > end; k -= step) ++down;
    ASSERT_EQ(count_signed(start, end, step), up);
    ASSERT_EQ(count_signed(start, end, -step), down);
    if (start >= 0 && end >= 0) {
      ASSERT_EQ(count_unsigned(start, end, step, true), up);
      ASSERT_EQ(count_unsigned(start, end, step, false), down);
    }
  }
}

TEST(TaskLoop, CountsAtTheEdgesOfTheTypes) {
  constexpr int64_t low = std::numeric_limits<int64_t>::min();
  constexpr int64_t high = std::numeric_limits<int64_t>::max();
  constexpr uint64_t top = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(count_signed(low, high, 1), top);
  EXPECT_EQ(count_signed(high, low, -1), top);
  EXPECT_EQ(count_signed(low, high, high), 3u);
  EXPECT_EQ(count_signed(high, low, low), 2u);
  EXPECT_EQ(count_unsigned(0, top, 1, true), top);
  EXPECT_EQ(count_unsigned(top, 0, top, false), 1u);
  EXPECT_EQ(count_unsigned(top - 1, top, 1000, true), 1u);
  EXPECT_EQ(count_unsigned(top, top, 1, true), 0u);
}

void check_split(uint64_t n, uint32_t flags, uint64_t clause, uint32_t threads) {
  const TaskLoopSplit split = split_taskloop(n, flags, clause, threads);
  ASSERT_GE(split.tasks, 1u);
  ASSERT_LE(split.tasks, n);
  ASSERT_LT(split.larger, split.tasks);
  const bool grain = (flags & kTaskGrainsize) != 0;
  if (grain && (flags & kTaskStrict) != 0) {
    ASSERT_EQ(split.size, clause);
    ASSERT_EQ(split.larger, 0u);
    ASSERT_GE(split.tasks * clause, n);
    ASSERT_LT((split.tasks - 1) * clause, n);
    return;
  }
  ASSERT_EQ(split.tasks * split.size + split.larger, n);
  if (grain && n >= clause) {
    ASSERT_GE(split.size, clause);
    ASSERT_LT(split.size + (split.larger != 0), 2 * clause + (clause == 1));
  } else if (grain) {
    ASSERT_EQ(split.tasks, 1u);
  } else {
    ASSERT_EQ(split.tasks, std::min<uint64_t>(n, clause == 0 ? threads : clause));
  }
}

TEST(TaskLoop, SpreadsAllIterationsAsTheClausesSay) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t n = 1 + random() % 500;
    const uint64_t clause = 1 + random() % 60;
    const uint32_t threads = 1 + random() % 40;
    check_split(n, kTaskGrainsize, clause, threads);
    check_split(n, kTaskGrainsize | kTaskStrict, clause, threads);
    check_split(n, 0, clause, threads);
    check_split(n, kTaskStrict, clause, threads);
    check_split(n, 0, 0, threads);
    if (HasFatalFailure()) FAIL() << n << " iterations, clause " << clause << ", " << threads;
  }
}

}  // namespace
