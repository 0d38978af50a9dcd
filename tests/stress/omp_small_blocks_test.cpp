// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slots of an allocator's shared pages: nobody gets what another has, and what is given back comes again.
#include "omp/small_blocks.h"

#include <gtest/gtest.h>
#include <string.h>

#include <set>
#include <thread>
#include <vector>

namespace bosk::omp {
namespace {

using topology::kNone;
using Slot = SmallBlocks::Slot;

TEST(SmallBlocks, AreDistinctAndFitTheirSize) {
  SmallBlocks blocks;
  std::set<std::pair<char*, char*>> ranges;
  for (size_t size = 1; size <= SmallBlocks::kLargest; size += 7) {
    const Slot slot = blocks.take(size, {}, kNone, false);
    ASSERT_NE(slot.at, nullptr);
    EXPECT_GE(slot.bytes, size);
    EXPECT_TRUE(slot.bytes < 2 * size || slot.bytes == 128) << size << " in " << slot.bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slot.at) % 128, 0u);
    EXPECT_TRUE(slot.fresh);
    for (size_t i = 0; i < slot.bytes; i++) ASSERT_EQ(static_cast<char*>(slot.at)[i], 0);
    memset(slot.at, 1, slot.bytes);
    ranges.emplace(static_cast<char*>(slot.at), static_cast<char*>(slot.at) + slot.bytes);
  }
  char* end = nullptr;
  for (const auto& [from, to] : ranges) {
    EXPECT_GE(from, end);
    end = to;
  }
  blocks.release_all();
}

TEST(SmallBlocks, OfOneHomeAreNotOfAnother) {
  SmallBlocks blocks;
  std::set<SmallBlocks::Chunk*> of[3];
  std::vector<Slot> taken;
  for (int i = 0; i < 1000; i++) {
    const Slot slot = blocks.take(300, {}, static_cast<uint32_t>(i % 3), false);
    ASSERT_NE(slot.at, nullptr);
    of[i % 3].insert(slot.chunk);
    taken.push_back(slot);
    if (i % 2 == 0) blocks.give_back(slot.chunk, slot.at);
  }
  for (int a = 0; a < 3; a++) {
    for (SmallBlocks::Chunk* chunk : of[a]) {
      EXPECT_EQ(of[(a + 1) % 3].count(chunk), 0u);
    }
  }
  blocks.release_all();
}

TEST(SmallBlocks, ComeAgain) {
  SmallBlocks blocks;
  std::set<SmallBlocks::Chunk*> chunks;
  std::vector<Slot> taken;
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 630; i++) {
      taken.push_back(blocks.take(1000, {}, kNone, false));
      ASSERT_NE(taken.back().at, nullptr);
      EXPECT_EQ(taken.back().fresh, round == 0);
      chunks.insert(taken.back().chunk);
    }
    for (const Slot& slot : taken) blocks.give_back(slot.chunk, slot.at);
    taken.clear();
  }
  EXPECT_EQ(chunks.size(), 10u) << "630 slots are ten chunks of 63";
  blocks.release_all();
}

TEST(SmallBlocks, ManyThreadsAtOnce) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 20'000;
  constexpr int kHeld = 40;
  SmallBlocks blocks;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      Slot held[kHeld] = {};
      for (int i = 0; i < kRounds; i++) {
        Slot& slot = held[i * 7 % kHeld];
        // Plain accesses: whoever has the slot has it alone, which ThreadSanitizer sees, too.
        if (slot.at != nullptr) {
          if (*static_cast<int*>(slot.at) != t) wrong++;
          blocks.give_back(slot.chunk, slot.at);
        }
        slot = blocks.take(static_cast<size_t>(i % 3 * 500 + 1), {}, kNone, false);
        if (slot.at == nullptr) {
          wrong++;
          return;
        }
        if (slot.fresh && *static_cast<int*>(slot.at) != 0) wrong++;
        *static_cast<int*>(slot.at) = t;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  blocks.release_all();
}

}  // namespace
}  // namespace bosk::omp
