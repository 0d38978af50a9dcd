// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages that are kept: each block is one owner's at a time, and no more are kept than was said.
#include "base/spare_pages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/mapped_array.h"

namespace bosk::base {
namespace {

TEST(SparePages, KeepsBlocksBySizeUpToALimit) {
  for (const size_t bytes : {kPage, 2 * kPage, 16 * kPage}) {
    SparePages spare;
    EXPECT_EQ(spare.take(bytes), nullptr);
    std::set<void*> kept;
    for (;;) {
      void* block = map_pages(bytes);
      ASSERT_NE(block, nullptr);
      if (!spare.give(block, bytes)) {
        unmap_pages(block, bytes);
        break;
      }
      EXPECT_TRUE(kept.insert(block).second);
      ASSERT_LE(kept.size(), 64u);
    }
    EXPECT_EQ(kept.size(), bytes == kPage ? 64u : 8u);
    for (const size_t other : {kPage, 2 * kPage, 4 * kPage, 16 * kPage}) {
      if (other != bytes) {
        EXPECT_EQ(spare.take(other), nullptr);
      }
    }
    while (void* block = spare.take(bytes)) {
      EXPECT_EQ(kept.erase(block), 1u);
      unmap_pages(block, bytes);
    }
    EXPECT_TRUE(kept.empty());
  }
}

TEST(SparePages, KeepsNothingElse) {
  SparePages spare;
  EXPECT_FALSE(spare.give(nullptr, kPage));
  for (const size_t bytes : {size_t{0}, kPage - 1, 3 * kPage, 32 * kPage}) {
    void* block = map_pages(32 * kPage);
    EXPECT_FALSE(spare.give(block, bytes));
    EXPECT_EQ(spare.take(bytes), nullptr);
    unmap_pages(block, 32 * kPage);
  }
}

TEST(SparePages, WhoeverTakesSomeFindsZeros) {
  for (const size_t bytes : {kPage, 16 * kPage}) {
    auto* block = static_cast<char*>(take_pages(bytes));
    ASSERT_NE(block, nullptr);
    memset(block, 1, bytes);
    give_pages(block, bytes);
    auto* again = static_cast<char*>(take_pages(bytes));
    EXPECT_EQ(again, block);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(again[i], 0);
    give_pages(again, bytes);
  }
}

TEST(SparePages, ArraysOfSeveralThreadsNeverShareOne) {
  constexpr uint32_t kThreads = 4;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t me = 0; me < kThreads; ++me)
    threads.emplace_back([me, &wrong] {
      std::mt19937 random(me);
      for (int round = 0; round < 3000; ++round) {
        MappedArray<uint32_t> arrays[3];
        for (auto& array : arrays) {
          const uint32_t n = 1 + random() % 6000;
          if (!array.resize(n)) ++wrong;
          for (uint32_t i = 0; i < n; i += 512) {
            if (array[i] != 0) ++wrong;  // whatever was in it
            array[i] = me * 1000 + 7;
          }
        }
        for (auto& array : arrays) {
          for (uint32_t i = 0; i < array.size(); i += 512)
            if (array[i] != me * 1000 + 7) ++wrong;
          array.release();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace bosk::base
