// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The affinity table against the paper's example, against a table that keeps everything, and at its limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "affinity/page_table.h"

namespace bosk::affinity {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHuge = uint64_t{2} << 20;

TableShape on_nodes(uint32_t nodes) {
  TableShape shape;
  shape.nodes = nodes;
  return shape;
}

TEST(PageTable, TheExampleOfThePaper) {
  // Figure 5: four nodes, four sub-blocks, two places each. Thread 0 was here before; thread 3 comes from node 1.
  PageTable table(on_nodes(4));
  SharingMatrix matrix;
  constexpr uint64_t kAddress = 7 * kPage + 1024;
  EXPECT_EQ(table.note(kAddress, 0, 0, &matrix), kNoNode);
  EXPECT_EQ(matrix.threads(), 0U);
  EXPECT_EQ(table.note(kAddress + 1023, 3, 1, &matrix), kNoNode);
  EXPECT_EQ(matrix.at(0, 3), 1U);
  EXPECT_EQ(table.note(kAddress, 3, 1, &matrix), kNoNode);
  EXPECT_EQ(table.note(kAddress, 3, 1, &matrix), kNoNode) << "3 is not more than 2 · 1 + 1";
  EXPECT_EQ(table.note(kAddress, 3, 1, &matrix), 1U) << "4 is";
  table.note_move(kAddress);
  const auto after = table.page(kAddress);
  ASSERT_EQ(after.size(), 4U);
  EXPECT_EQ(after[0], 0U);
  EXPECT_EQ(after[1], 2U);
}

TEST(PageTable, SubBlocksAreWhatThreadsShare) {
  PageTable table(on_nodes(2));
  SharingMatrix matrix(4);
  table.note(0, 0, 0, &matrix);
  table.note(1024, 1, 0, &matrix);
  EXPECT_EQ(matrix.at(0, 1), 0U) << "the same page, another sub-block";
  table.note(1023, 2, 0, &matrix);
  EXPECT_EQ(matrix.at(0, 2), 1U);
  table.note(0, 3, 0, &matrix);
  EXPECT_EQ(matrix.at(2, 3), 1U);
  EXPECT_EQ(matrix.at(0, 3), 0U) << "forgotten: two places";
}

TEST(PageTable, EquationSix) {
  const auto of = [](std::vector<uint32_t> by_node) { return preferred_node(by_node); };
  EXPECT_EQ(of({}), kNoNode);
  EXPECT_EQ(of({0, 0}), kNoNode);
  EXPECT_EQ(of({1, 0}), kNoNode);
  EXPECT_EQ(of({2, 0}), 0U);
  EXPECT_EQ(of({3, 0, 7, 3}), kNoNode);
  EXPECT_EQ(of({3, 0, 8, 3}), 2U);
  EXPECT_EQ(of({UINT32_MAX, UINT32_MAX}), kNoNode);
}

TEST(PageTable, EquationsThreeAndFour) {
  EXPECT_EQ(page_exclusivity(std::vector<uint32_t>{0, 0}), 0);
  EXPECT_EQ(page_exclusivity(std::vector<uint32_t>{3, 1}), .75);
  PageTable table(on_nodes(2));
  SharingMatrix matrix;
  EXPECT_EQ(average_exclusivity(table), 0);
  // Two pages of one huge page, each with one node; one page of another one, with both.
  for (int i = 0; i < 6; ++i) table.note(0, 0, 0, &matrix);
  for (int i = 0; i < 2; ++i) table.note(kPage, 0, 1, &matrix);
  for (int i = 0; i < 2; ++i) table.note(kHuge, 0, i, &matrix);
  EXPECT_DOUBLE_EQ(average_exclusivity(table), (6 + 2 + 1) / 10.0);
  EXPECT_DOUBLE_EQ(average_huge_exclusivity(table), (6 + 1) / 10.0);
  const auto huge = table.huge_page(5 * kPage);
  ASSERT_EQ(huge.size(), 2U);
  EXPECT_EQ(huge[0], 6U);
  EXPECT_EQ(huge[1], 2U);
  table.note_huge_move(kPage);
  EXPECT_EQ(table.page(0)[0], 3U);
  EXPECT_EQ(table.page(kPage)[1], 1U);
  EXPECT_EQ(table.page(kHuge)[0], 1U) << "another huge page";
}

TEST(PageTable, AFullCounterHidesNobody) {
  for (const uint32_t bytes : {1U, 2U}) {
    TableShape shape = on_nodes(2);
    shape.counter_bytes = bytes;
    PageTable table(shape);
    SharingMatrix matrix;
    const uint32_t most = bytes == 1 ? 255 : 65535;
    for (uint32_t i = 0; i < most; ++i) table.note(0, 0, 0, &matrix);
    EXPECT_EQ(table.page(0)[0], most);
    table.note(0, 0, 0, &matrix);
    EXPECT_EQ(table.page(0)[0], most / 2 + 1);
    for (uint32_t i = 0; i < 2 * most; ++i) table.note(0, 1, 1, &matrix);
    EXPECT_EQ(preferred_node(table.page(0)), 1U);
  }
}

TEST(PageTable, TakesLessThanHalfAPercentOfTheMemoryOnFourNodes) {
  PageTable table(on_nodes(4));
  SharingMatrix matrix;
  constexpr uint64_t kMemory = uint64_t{256} << 20;
  for (uint64_t at = 0; at < kMemory; at += kPage) table.note(at, 0, 0, &matrix);
  EXPECT_LE(static_cast<double>(table.bytes()), .0049 * kMemory);
  EXPECT_EQ(table.evicted(), 0U);
}

TEST(PageTable, StaysInItsLimitAndKeepsWhatIsUsed) {
  TableShape shape = on_nodes(4);
  shape.limit_bytes = size_t{1} << 20;
  PageTable table(shape);
  SharingMatrix matrix;
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) {
    table.note(0, 0, 2, &matrix);  // always used
    table.note(random() >> 16, 0, 0, &matrix);
    ASSERT_LE(table.bytes(), shape.limit_bytes);
  }
  EXPECT_GT(table.evicted(), 90'000U);
  EXPECT_FALSE(table.page(0).empty());
  EXPECT_EQ(preferred_node(table.page(0)), 2U);
}

TEST(PageTable, WhoIsNotKnownCountsNowhere) {
  PageTable table(on_nodes(2));
  SharingMatrix matrix;
  table.note(0, kMostThreads, 0, &matrix);
  table.note(0, UINT32_MAX, 1, &matrix);
  table.note(0, 1, 2, &matrix);
  table.note(0, 1, kNoNode, &matrix);
  EXPECT_EQ(matrix.threads(), 0U);
  const auto page = table.page(0);
  ASSERT_EQ(page.size(), 2U);
  EXPECT_EQ(page[0], 1U);
  EXPECT_EQ(page[1], 1U);
}

/// What the table says with maps, counters without end, and threads in a list.
struct Reference {
  uint32_t nodes;
  uint32_t sharers;
  uint32_t sub_block;
  std::map<uint64_t, std::vector<uint32_t>> pages;
  std::map<uint64_t, std::deque<uint32_t>> sub_blocks;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> shared;

  void note(uint64_t address, uint32_t thread, uint32_t node) {
    auto& counts = pages.try_emplace(address / kPage, nodes).first->second;
    ++counts[node];
    auto& who = sub_blocks[address / sub_block];
    std::erase(who, thread);
    who.push_front(thread);
    if (who.size() > sharers) who.pop_back();
    for (size_t a = 0; a < who.size(); ++a)
      for (size_t b = a + 1; b < who.size(); ++b) ++shared[std::minmax(who[a], who[b])];
  }
  void forget(uint64_t begin, uint64_t end) {
    const uint64_t first = begin / kPage;
    const uint64_t last = (end + kPage - 1) / kPage;
    std::erase_if(pages,
                  [&](const auto& page) { return page.first >= first && page.first < last; });
    std::erase_if(sub_blocks, [&](const auto& of) {
      const uint64_t page = of.first * sub_block / kPage;
      return page >= first && page < last;
    });
  }
};

TEST(PageTable, SaysWhatOneThatKeepsEverythingSays) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 40; ++round) {
    TableShape shape;
    shape.nodes = 1 + random() % 9;
    shape.counter_bytes = random() % 2 == 0 ? 2 : 4;  // none of them gets full
    shape.sharers = 2 + random() % 7;
    shape.sub_block_bytes = 64U << random() % 7;
    PageTable table(shape);
    SharingMatrix matrix;
    Reference reference{shape.nodes, shape.sharers, shape.sub_block_bytes, {}, {}, {}};
    const uint32_t threads = 1 + random() % 20;
    const uint64_t pages = 1 + random() % 5000;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t address = random() % (pages * kPage);
      if (random() % 500 == 0) {
        const uint64_t end = address + random() % (pages * kPage);
        table.forget(address, end);
        if (address < end) reference.forget(address, end);
        continue;
      }
      const auto thread = static_cast<uint32_t>(random() % threads);
      const auto node = static_cast<uint32_t>(random() % shape.nodes);
      reference.note(address, thread, node);
      const uint32_t preferred = table.note(address, thread, node, &matrix);
      ASSERT_EQ(preferred, preferred_node(reference.pages[address / kPage]));
    }
    size_t seen = 0;
    table.for_each_page([&](uint64_t address, std::span<const uint32_t> by_node) {
      ++seen;
      const auto at = reference.pages.find(address / kPage);
      ASSERT_NE(at, reference.pages.end()) << address;
      ASSERT_TRUE(std::ranges::equal(by_node, at->second));
    });
    ASSERT_EQ(seen, reference.pages.size());
    for (const auto& [pair, events] : reference.shared)
      ASSERT_EQ(matrix.at(pair.first, pair.second), events);
    ASSERT_EQ(reference.shared.empty(), matrix.threads() == 0);
  }
}

}  // namespace
}  // namespace bosk::affinity
