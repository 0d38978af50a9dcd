// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic of loops against a plain model in 128-bit integers.
#include "omp/loop_space.h"

#include <gtest/gtest.h>
#include <limits.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace bosk::omp {
namespace {

using Wide = __int128;

Wide model_count(Wide start, Wide end, Wide step) {
  if (step > 0) return start < end ? (end - start + step - 1) / step : 0;
  return start > end ? (start - end - step - 1) / -step : 0;
}

/// Checks bounds, trip count and the values of some ranges of a loop.
template <typename T>
void check_loop(const LoopBounds& bounds, Wide start, Wide end, Wide step) {
  const Wide count = model_count(start, end, step);
  ASSERT_EQ(static_cast<Wide>(trip_count(bounds)), count);
  ASSERT_EQ(bounds.empty, count == 0);
  if (count == 0) return;
  const uint64_t n = static_cast<uint64_t>(count);
  const std::set<uint64_t> cuts = {0, 1, 2, n / 3, n / 2, n - 1, n};
  for (const uint64_t first : cuts) {
    if (first >= n) continue;
    for (const uint64_t last : cuts) {
      if (last <= first || last > n) continue;
      const Chunk chunk = chunk_of(bounds.start, bounds.end, bounds.step, n, {first, last});
      ASSERT_EQ(static_cast<Wide>(static_cast<T>(chunk.begin)), start + first * step);
      const Wide stop = static_cast<T>(chunk.end);
      ASSERT_EQ(stop, last == n ? end : start + last * step);
      // The compiled loop over this chunk runs last - first times.
      ASSERT_EQ(model_count(start + first * step, stop, step), static_cast<Wide>(last - first));
    }
  }
}

void check_long(long start, long end, long step) {
  check_loop<long>(bounds_of(start, end, step), start, end, step);
}

void check_ull(bool up, unsigned long long start, unsigned long long end,
               unsigned long long distance) {
  const Wide step = up ? static_cast<Wide>(distance) : -static_cast<Wide>(distance);
  check_loop<unsigned long long>(bounds_of(up, start, end, up ? distance : 0 - distance), start,
                                 end, step);
}

const std::vector<long> kLongEdges = {
    LONG_MIN, LONG_MIN + 1, LONG_MIN + 2, LONG_MIN / 2, -7,      -2, -1, 0, 1, 2,
    3,        LONG_MAX / 2, LONG_MAX - 2, LONG_MAX - 1, LONG_MAX};
const std::vector<unsigned long long> kUllEdges = {
    0, 1, 2, 7, LONG_MAX, 1ull << 63, (1ull << 63) + 1, ULLONG_MAX - 2, ULLONG_MAX - 1, ULLONG_MAX};

TEST(LoopSpace, LongLoopsAtTheEdges) {
  for (const long start : kLongEdges)
    for (const long end : kLongEdges)
      for (const long step : kLongEdges)
        if (step != 0) check_long(start, end, step);
}

TEST(LoopSpace, UnsignedLoopsAtTheEdges) {
  for (const unsigned long long start : kUllEdges)
    for (const unsigned long long end : kUllEdges)
      for (const unsigned long long step : kUllEdges)
        for (const bool up : {false, true})
          if (step != 0) check_ull(up, start, end, step);
}

TEST(LoopSpace, AStepOfZeroIsNoLoop) {
  EXPECT_EQ(trip_count(bounds_of(0L, 10L, 0L)), 0u);
  EXPECT_EQ(trip_count(bounds_of(10L, 0L, 0L)), 0u);
  EXPECT_EQ(trip_count(bounds_of(true, 0ull, 10ull, 0ull)), 0u);
}

/// What GCC emits for schedule(static): n / T, remainder to the first threads.
IterationRange compilers_block(uint64_t n, uint32_t threads, uint32_t index) {
  uint64_t quotient = n / threads;
  uint64_t rest = n % threads;
  if (index < rest) {
    rest = 0;
    ++quotient;
  }
  const uint64_t first = quotient * index + rest;
  return {first, first + quotient};
}

void check_blocks(uint64_t count, uint32_t size) {
  uint64_t next = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const IterationRange mine = block_of(count, size, i);
    const IterationRange theirs = compilers_block(count, size, i);
    ASSERT_EQ(mine.first, theirs.first);
    ASSERT_EQ(mine.last, theirs.last);
    ASSERT_EQ(mine.first, next);
    next = mine.last;
    if (!mine.empty()) {
      ASSERT_EQ(block_owner(count, size, mine.first), i);
      ASSERT_EQ(block_owner(count, size, mine.last - 1), i);
    }
  }
  ASSERT_EQ(next, count);
}

TEST(LoopSpace, BlocksAreTheCompilers) {
  for (const uint64_t count :
       {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{7}, uint64_t{64}, uint64_t{1000},
        uint64_t{1} << 32, (uint64_t{1} << 32) + 5, uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX})
    for (const uint32_t size : {1u, 2u, 3u, 7u, 64u, 1000u}) check_blocks(count, size);
}

TEST(LoopSpace, FixedChunksCoverTheLoopOnce) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{7}, uint64_t{64}})
    for (uint64_t chunk = 1; chunk < 70; ++chunk) {
      uint64_t next = 0;
      for (uint64_t k = 0; k * chunk < count; ++k) {
        const IterationRange range = fixed_chunk(count, chunk, k);
        ASSERT_EQ(range.first, next);
        ASSERT_GT(range.last, range.first);
        ASSERT_LE(range.last - range.first, chunk);
        next = range.last;
      }
      ASSERT_EQ(next, count);
    }
  const IterationRange last = fixed_chunk(UINT64_MAX, UINT64_MAX - 1, 1);
  EXPECT_EQ(last.first, UINT64_MAX - 1);
  EXPECT_EQ(last.last, UINT64_MAX);
  const IterationRange whole = fixed_chunk(3, UINT64_MAX, 0);
  EXPECT_EQ(whole.last, 3u);
}

TEST(LoopSpace, GuidedSharesShrinkAndEnd) {
  for (const uint64_t count :
       {uint64_t{1}, uint64_t{5}, uint64_t{1000}, uint64_t{1000000}, UINT64_MAX})
    for (const uint32_t size : {1u, 2u, 3u, 64u})
      for (const uint64_t chunk : {uint64_t{1}, uint64_t{2}, uint64_t{17}, UINT64_MAX}) {
        uint64_t left = count;
        uint64_t before = UINT64_MAX;
        uint64_t chunks = 0;
        while (left > 0) {
          const uint64_t share = guided_share(left, size, chunk);
          ASSERT_GT(share, 0u);
          ASSERT_LE(share, left);
          ASSERT_LE(share, before);
          // Proportional to what is left, unless that is less than the chunk asked for.
          ASSERT_TRUE(share == left || share >= chunk);
          ASSERT_GE(static_cast<Wide>(share) * size, static_cast<Wide>(std::min(left, chunk)));
          ASSERT_TRUE(share == std::min(left, chunk) ||
                      share == static_cast<uint64_t>((static_cast<Wide>(left) + size - 1) / size));
          before = share;
          left -= share;
          ++chunks;
        }
        ASSERT_LE(chunks, uint64_t{size} * 46 + 1);
      }
}

TEST(LoopSpace, OvershootIsJudgedExactly) {
  EXPECT_TRUE(overshoot_fits(1000, 1, 4));
  EXPECT_TRUE(overshoot_fits(UINT64_MAX - 5, 1, 4));
  EXPECT_FALSE(overshoot_fits(UINT64_MAX - 4, 1, 4));
  EXPECT_FALSE(overshoot_fits(10, UINT64_MAX / 2, 2));
  EXPECT_FALSE(overshoot_fits(UINT64_MAX, 1, 1));
}

#ifdef BOSK_HAVE_RAPIDCHECK
RC_GTEST_PROP(LoopSpaceProperty, AnyLongLoop, (long start, long end, long step)) {
  RC_PRE(step != 0);
  check_long(start, end, step);
}
RC_GTEST_PROP(LoopSpaceProperty, AnyUnsignedLoop,
              (unsigned long long start, unsigned long long end, unsigned long long step,
               bool up)) {
  RC_PRE(step != 0);
  check_ull(up, start, end, step);
}
RC_GTEST_PROP(LoopSpaceProperty, AnyBlock, (uint64_t count)) {
  check_blocks(count, *rc::gen::inRange(1u, 300u));
}
RC_GTEST_PROP(LoopSpaceProperty, DivisionIsDivision, (uint64_t a, uint64_t b)) {
  RC_PRE(b != 0);
  RC_ASSERT(divide(a, b) == a / b);
  RC_ASSERT(static_cast<Wide>(divide_up(a, b)) == (static_cast<Wide>(a) + b - 1) / b);
}
#endif

}  // namespace
}  // namespace bosk::omp
