// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes of classes, where pages are expected, and blocks of all nodes of an invented machine.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include <bosk/error.h>
#include "invented_machine.h"
#include "memory/allocate.h"
#include "memory/heaps.h"
#include "memory/manager.h"
#include "memory/page_blocks.h"
#include "memory/place_pages.h"
#include "memory/thread_heaps.h"

namespace bosk::memory {
namespace {

constexpr uint32_t kNodes = 4;

const topology::Machine& machine() {
  static const test::MachinePtr made = test::symmetric(kNodes, 1, 1, 2);
  return *made;
}

TEST(MemoryHeaps, ClassesHoldWhatIsInThem) {
  uint32_t last = 0;
  for (size_t bytes = 0; bytes <= kMostInHand; ++bytes) {
    const uint32_t size_class = class_of(bytes);
    ASSERT_LT(size_class, kClasses);
    ASSERT_GE(size_of_class(size_class), bytes);
    ASSERT_GE(size_class, last);
    ASSERT_LE(size_class, last + 1);
    ASSERT_TRUE(size_class == 0 || size_of_class(size_class - 1) < bytes);
    last = size_class;
  }
  EXPECT_EQ(last, kClasses - 1);
  EXPECT_EQ(size_of_class(last), kMostInHand);
}

TEST(MemoryHeaps, BlocksLieInTheRegionOfTheirNode) {
  AreaTable* areas = start(machine());
  ASSERT_NE(areas, nullptr);
  std::vector<void*> blocks;
  for (NodeIndex node = 0; node < kNodes; ++node) {
    void* block = heap_allocate(areas->nodes(), node, 5000, kHeapAlignment, false);
    if (block == nullptr) GTEST_SKIP() << "no mimalloc here";
    memset(block, 1, 5000);
    HeapBlock found;
    ASSERT_EQ(heap_look_at(block, &found), Freed::kYes);
    EXPECT_EQ(found.node, node);
    EXPECT_EQ(found.bytes, 5000u);
    EXPECT_EQ(heap_regions.node_of(reinterpret_cast<uintptr_t>(block)), node);
    EXPECT_EQ(heap_use(node).used, 5000u);
    blocks.push_back(block);
  }
  for (void* block : blocks) {
    EXPECT_EQ(heap_free(block), Freed::kYes);
    EXPECT_EQ(heap_free(block), Freed::kNoBlock);
  }
  for (NodeIndex node = 0; node < kNodes; ++node) EXPECT_EQ(heap_use(node).used, 0u);
}

TEST(MemoryHeaps, ExpectedPlacesAddUp) {
  MachineNodes nodes;
  nodes.set(machine());
  constexpr size_t kPage = 4096;
  const NodeIndex some[] = {1, 3, 0};
  for (const size_t pages : {1, 2, 3, 5, 100, 1001}) {
    for (const auto kind :
         {PagePlan::Kind::kOnNode, PagePlan::Kind::kInterleaved, PagePlan::Kind::kWeighted}) {
      const PagePlan plan{kind, 2, some, 3};
      uint64_t on[kNodes];
      expect_pages(nodes, pages * kPage, kPage, plan, on);
      EXPECT_EQ(on[0] + on[1] + on[2] + on[3], pages * kPage);
      if (kind == PagePlan::Kind::kOnNode) {
        EXPECT_EQ(on[2], pages * kPage);
        continue;
      }
      EXPECT_EQ(on[2], 0u);
      // No node has a page of a round more than another.
      const uint64_t rounds = kind == PagePlan::Kind::kWeighted ? 16 : 1;
      for (const NodeIndex node : some)
        EXPECT_NEAR(static_cast<double>(on[node]), static_cast<double>(pages * kPage) / 3,
                    static_cast<double>(rounds * kPage));
    }
  }
}

TEST(MemoryHeaps, BandwidthsWeigh) {
  test::MachinePtr own = test::symmetric(2, 1, 1, 1);
  const_cast<topology::NumaNode&>(own->node_array[0]).bandwidth = 300;
  const_cast<topology::NumaNode&>(own->node_array[1]).bandwidth = 100;
  MachineNodes nodes;
  nodes.set(*own);
  const NodeIndex both[] = {0, 1};
  uint64_t on[2];
  expect_pages(nodes, 6400 * 4096, 4096, {PagePlan::Kind::kWeighted, kNone, both, 2}, on);
  EXPECT_EQ(on[0], uint64_t{4800} * 4096);
  EXPECT_EQ(on[1], uint64_t{1600} * 4096);
}

}  // namespace
}  // namespace bosk::memory
