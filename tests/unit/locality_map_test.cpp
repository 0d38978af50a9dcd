// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which node a CPU and an address are of, for the two kinds of addresses that QEMU shows to plugins.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/plugin/address_map.h"
#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

locality_address_map parsed(const char* cpus, const char* memory) {
  locality_address_map map;
  const char* wrong = locality_map_parse(&map, cpus, memory);
  EXPECT_EQ(wrong, nullptr) << wrong;
  return map;
}

TEST(LocalityMap, ReadsCpusOfEachNode) {
  const locality_address_map map = parsed("0-1+5/2/3-4", "16/16/16");
  EXPECT_EQ(map.nodes, 3u);
  EXPECT_EQ(map.cpus, 6u);
  const std::vector<int> nodes(map.node_of_cpu, map.node_of_cpu + 6);
  EXPECT_EQ(nodes, (std::vector<int>{0, 0, 1, 2, 2, 0}));
}

TEST(LocalityMap, ANodeMayHaveNoCpuOrNoMemory) {
  const locality_address_map map = parsed("0-3//4", "16/32/0");
  EXPECT_EQ(map.nodes, 3u);
  EXPECT_EQ(locality_node_of(&map, 40 * kMiB), 1u);
  EXPECT_EQ(locality_node_of(&map, 48 * kMiB), unsigned{kNoNode});
}

TEST(LocalityMap, SmallMachinesHaveAllMemoryBelowTheHole) {
  const locality_address_map map = parsed("0/1", "1024/1024");
  EXPECT_EQ(locality_node_of(&map, 0), 0u);
  EXPECT_EQ(locality_node_of(&map, kGiB - 1), 0u);
  EXPECT_EQ(locality_node_of(&map, kGiB), 1u);
  EXPECT_EQ(locality_node_of(&map, 2 * kGiB - 1), 1u);
  EXPECT_EQ(locality_node_of(&map, 2 * kGiB), unsigned{kNoNode});
}

TEST(LocalityMap, LargeMachinesGoOnAtFourGiB) {
  const locality_address_map map = parsed("0/1/2/3", "1024/1024/1024/1024");
  EXPECT_EQ(locality_node_of(&map, 2 * kGiB - 1), 1u);
  EXPECT_EQ(locality_node_of(&map, 2 * kGiB), unsigned{kNoNode}) << "the hole";
  EXPECT_EQ(locality_node_of(&map, 4 * kGiB - 1), unsigned{kNoNode}) << "the hole";
  EXPECT_EQ(locality_node_of(&map, 4 * kGiB), 2u);
  EXPECT_EQ(locality_node_of(&map, 5 * kGiB), 3u);
  EXPECT_EQ(locality_node_of(&map, 6 * kGiB), unsigned{kNoNode});
}

TEST(LocalityMap, ANodeMayLieOnBothSidesOfTheHole) {
  const locality_address_map map = parsed("0/1", "1536/1536");
  EXPECT_EQ(locality_node_of(&map, 2 * kGiB - 1), 1u);
  EXPECT_EQ(locality_node_of(&map, 4 * kGiB), 1u);
  EXPECT_EQ(locality_node_of(&map, 5 * kGiB - 1), 1u);
  EXPECT_EQ(locality_node_of(&map, 5 * kGiB), unsigned{kNoNode});
}

TEST(LocalityMap, BlockOffsetsStartAtTwiceTheStart) {
  locality_address_map map = parsed("0/1/2", "1024/512/1024");
  locality_map_use(&map, kBlockOffsets);
  EXPECT_EQ(locality_node_of(&map, kGiB - 1), 0u);
  EXPECT_EQ(locality_node_of(&map, kGiB), unsigned{kNoNode});
  EXPECT_EQ(locality_node_of(&map, 2 * kGiB), 1u);
  EXPECT_EQ(locality_node_of(&map, 2 * kGiB + 512 * kMiB), unsigned{kNoNode});
  EXPECT_EQ(locality_node_of(&map, 3 * kGiB), 2u);
}

TEST(LocalityMap, SaysWhatIsWrong) {
  const struct {
    std::string cpus;
    const char* memory;
    const char* says;
  } cases[] = {
      {"", "1", "there is none"},
      {"0-", "1", "number"},
      {"3-1", "1", "ends before"},
      {"0/0", "1/1", "two places"},
      {"0+2", "1", "no node"},
      {"0x", "1", "unexpected"},
      {"0+", "1", "after '+'"},
      {"512", "1", "below 512"},
      {"0/1", "1", "fewer nodes"},
      {"0", "1/1", "more nodes"},
      {"0", "one", "MiB"},
      {"0/1", "0/0", "there is none"},
      {"0" + std::string(64, '/'), "1", "more than 64 nodes"},
  };
  for (const auto& each : cases) {
    locality_address_map map;
    const char* wrong = locality_map_parse(&map, each.cpus.c_str(), each.memory);
    ASSERT_NE(wrong, nullptr) << each.cpus << " " << each.memory;
    EXPECT_NE(std::string(wrong).find(each.says), std::string::npos) << wrong;
  }
}

#ifdef BOSK_HAVE_RAPIDCHECK
// Both kinds of address name the same byte of the machine's memory; a plain walk over the nodes says whose
// it is.
RC_GTEST_PROP(LocalityMap, BothKindsAgreeWithAWalk, ()) {
  const auto sizes = *rc::gen::nonEmpty(rc::gen::resize(
      kMaxNodes - 1, rc::gen::container<std::vector<unsigned>>(rc::gen::inRange(0u, 3000u))));
  std::string cpus;
  std::string memory;
  uint64_t all = 0;
  for (size_t node = 0; node < sizes.size(); node++) {
    cpus += (node ? "/" : "") + std::to_string(node);
    memory += (node ? "/" : "") + std::to_string(sizes[node]);
    all += sizes[node] * kMiB;
  }
  RC_PRE(all > 0 && sizes.size() <= kMaxNodes);
  locality_address_map map;
  RC_ASSERT(locality_map_parse(&map, cpus.c_str(), memory.c_str()) == nullptr);

  const uint64_t offset = *rc::gen::inRange<uint64_t>(0, all);
  unsigned node = 0;
  uint64_t start = 0;
  while (offset >= start + sizes[node] * kMiB) start += sizes[node++] * kMiB;

  const uint64_t below = all >= 0xb0000000 ? 2 * kGiB : all;
  RC_ASSERT(locality_node_of(&map, offset < below ? offset : offset - below + 4 * kGiB) == node);
  locality_map_use(&map, kBlockOffsets);
  RC_ASSERT(locality_node_of(&map, start + offset) == node);
}
#endif

}  // namespace
