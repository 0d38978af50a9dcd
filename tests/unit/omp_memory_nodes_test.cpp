// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where allocators put memory, on invented machines: spaces to nodes, traits to the kernel's policies.
#include "omp/memory_nodes.h"

#include <linux/mempolicy.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "omp/process_nodes.h"
#include "topology_test_support.h"

namespace bosk::omp {
namespace {

using topology::kNone;
using topology::Machine;
using topology::MachinePtr;
using topology::MachineSource;
using Nodes = std::vector<uint32_t>;
using Kind = MemoryPlan::Kind;

constexpr int kPreferredMany = 5;

Nodes list(const NodeSet& set) {
  Nodes nodes;
  for (uint32_t n = set.next(0); n != kNone; n = set.next(n + 1)) nodes.push_back(n);
  EXPECT_EQ(nodes.size(), set.count());
  return nodes;
}

NodeSet set_of(const Nodes& nodes) {
  NodeSet set;
  for (const uint32_t n : nodes) set.add(n);
  return set;
}

Nodes space(const MachinePtr& m, MemorySpace which) { return list(nodes_of_space(*m, which)); }

/// hbm.xml (nodes 0, 2, 4, 6 with CPUs, 1, 3, 5, 7 beside them) without its word "HBM", and with the
/// bandwidth of each node as hwloc writes it.
MachinePtr machine_with_bandwidths(const std::vector<uint64_t>& bandwidths) {
  std::ifstream file(topology::data_path("hbm.xml"));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (size_t at; (at = text.find(" subtype=\"HBM\"")) != std::string::npos;) text.erase(at, 14);
  std::string attribute = "  <memattr name=\"Bandwidth\" flags=\"5\">\n";
  size_t at = 0;
  for (const uint64_t bandwidth : bandwidths) {
    at = text.find("type=\"NUMANode\"", at + 1);
    EXPECT_NE(at, std::string::npos);
    const auto value_of = [&](const char* name) {
      const size_t from = text.find(name, at) + std::string(name).size();
      return text.substr(from, text.find('"', from) - from);
    };
    attribute += "    <memattr_value target_obj_gp_index=\"" + value_of(" gp_index=\"") +
                 "\" target_obj_type=\"NUMANode\" value=\"" + std::to_string(bandwidth) +
                 "\" initiator_cpuset=\"" + value_of(" cpuset=\"") + "\"/>\n";
  }
  text.insert(text.rfind("</topology>"), attribute + "  </memattr>\n");
  MachinePtr m = topology::load(MachineSource::From::kXmlText, text);
  for (uint32_t i = 0; i < bandwidths.size(); i++) {
    EXPECT_EQ(m->nodes()[i].bandwidth, bandwidths[i]) << "hwloc did not take the attribute";
  }
  return m;
}

TEST(NodeSet, HoldsTheKernelsNumbers) {
  const NodeSet set = set_of({0, 63, 64, 1023, 1024, kNone});
  EXPECT_EQ(list(set), (Nodes{0, 63, 64, 1023}));
  EXPECT_FALSE(set.has(1024));
  EXPECT_EQ(set.next(1024), kNone);
  EXPECT_TRUE(NodeSet{}.empty());
  EXPECT_EQ(list(parse_node_list("0-2,8, 64\n")), (Nodes{0, 1, 2, 8, 64}));
  EXPECT_EQ(list(parse_node_list("")), Nodes{});
  EXPECT_EQ(list(parse_node_list("3,x")), Nodes{3});
  EXPECT_EQ(parse_node_list("0-99999999").count(), 1024u);
}

TEST(Spaces, AllNodesAlikeStandOutInNothing) {
  for (const char* text : {"node:1 core:4", "node:4 core:4", "package:2 node:2 core:2"}) {
    const MachinePtr m = topology::synthetic(text);
    EXPECT_EQ(space(m, kDefaultSpace).size(), m->n_nodes) << text;
    EXPECT_EQ(space(m, kHighBandwidthSpace), Nodes{}) << text;
    EXPECT_EQ(space(m, kLargeCapacitySpace), Nodes{}) << text;
  }
}

TEST(Spaces, ByHwlocsWordAndCapacity) {
  const MachinePtr m = topology::xml("hbm.xml");
  EXPECT_EQ(space(m, kDefaultSpace), (Nodes{0, 2, 4, 6}));
  EXPECT_EQ(space(m, kHighBandwidthSpace), (Nodes{1, 3, 5, 7}));
  EXPECT_EQ(space(m, kLargeCapacitySpace), (Nodes{0, 2, 4, 6}));
  for (const MemorySpace other : {kConstantSpace, kLowLatencySpace}) {
    EXPECT_EQ(space(m, other), (Nodes{0, 2, 4, 6}));
  }
}

TEST(Spaces, ByBandwidth) {
  // Without the attribute and the word, memory beside memory is of no kind.
  EXPECT_EQ(space(machine_with_bandwidths({}), kHighBandwidthSpace), Nodes{});
  EXPECT_EQ(
      space(machine_with_bandwidths({90, 400, 90, 400, 90, 400, 90, 400}), kHighBandwidthSpace),
      (Nodes{1, 3, 5, 7}));
  // Slow memory beside the usual one.
  EXPECT_EQ(space(machine_with_bandwidths({90, 20, 91, 20, 90, 20, 89, 20}), kHighBandwidthSpace),
            (Nodes{0, 2, 4, 6}));
  // They differ by what measurements differ.
  EXPECT_EQ(space(machine_with_bandwidths({90, 91, 92, 93, 94, 95, 96, 97}), kHighBandwidthSpace),
            Nodes{});
  // The fastest of three kinds.
  EXPECT_EQ(
      space(machine_with_bandwidths({100, 800, 100, 800, 100, 20, 100, 20}), kHighBandwidthSpace),
      (Nodes{1, 3}));
  // Nobody can say of a node without a figure.
  EXPECT_EQ(space(machine_with_bandwidths({90, 400, 90, 400}), kHighBandwidthSpace), Nodes{});
}

TEST(Spaces, LargeMemoryWithoutCpus) {
  const MachinePtr m = topology::xml("cxl.xml");
  EXPECT_EQ(space(m, kDefaultSpace), (Nodes{0, 1}));
  EXPECT_EQ(space(m, kLargeCapacitySpace), (Nodes{2}));
  EXPECT_EQ(space(m, kHighBandwidthSpace), Nodes{});
}

TEST(Nearest, IsTheNodeOfTheCpuOrBesideIt) {
  const MachinePtr m = topology::xml("hbm.xml");
  const NodeSet usual = nodes_of_space(*m, kDefaultSpace);
  const NodeSet fast = nodes_of_space(*m, kHighBandwidthSpace);
  for (uint32_t cpu = 0; cpu < 16; cpu++) {
    EXPECT_EQ(nearest_node(*m, usual, cpu), cpu / 4 * 2);
    EXPECT_EQ(nearest_node(*m, fast, cpu), cpu / 4 * 2 + 1);
  }
  EXPECT_EQ(nearest_node(*m, usual, 999), 0u);
  EXPECT_EQ(nearest_node(*m, usual, kNone), 0u);
  EXPECT_EQ(nearest_node(*m, {}, 0), kNone);
  EXPECT_EQ(nearest_node(*m, set_of({77}), 0), kNone);
}

TEST(Nearest, GoesByDistance) {
  // Node 2 has no CPUs and is 30 from node 0, 40 from node 1; 0 and 1 are 21 and 22 apart.
  const MachinePtr m = topology::xml("cxl.xml");
  EXPECT_EQ(nearest_node(*m, set_of({0, 1, 2}), 0), 0u);
  EXPECT_EQ(nearest_node(*m, set_of({0, 1, 2}), 3), 1u);
  EXPECT_EQ(nearest_node(*m, set_of({1, 2}), 0), 1u);
  EXPECT_EQ(nearest_node(*m, set_of({2}), 3), 2u);
}

AllocatorTraits traits(uint8_t partition, uint8_t fallback = kDefaultMemFallback) {
  AllocatorTraits t;
  t.partition = partition;
  t.fallback = fallback;
  return t;
}

/// "first+pages mode nodes home" of every range.
std::string ranges(const MemoryPlan& plan, size_t pages) {
  std::string text;
  for (uint32_t i = 0; i < n_ranges(plan, pages); i++) {
    const RangePolicy range = range_of(plan, pages, i);
    text += (i == 0 ? "" : " ") + std::to_string(range.first_page) + "+" +
            std::to_string(range.pages) + ":";
    text += range.mode == MPOL_BIND         ? "bind"
            : range.mode == MPOL_PREFERRED  ? "prefer"
            : range.mode == MPOL_INTERLEAVE ? "interleave"
            : range.mode == kPreferredMany  ? "prefer-many"
                                            : "?";
    for (const uint32_t n : list(range.nodes)) text += "/" + std::to_string(n);
    if (range.home != kNone) text += "@" + std::to_string(range.home);
  }
  return text;
}

TEST(Plans, OfTheDefaultSpace) {
  const NodeSet all = set_of({0, 1, 4});
  EXPECT_EQ(ranges(plan_memory(traits(kEnvironment), all, false, kNone), 10), "");
  EXPECT_EQ(ranges(plan_memory(traits(kNearest), all, false, 4), 10), "0+10:prefer/4");
  EXPECT_EQ(ranges(plan_memory(traits(kInterleaved), all, false, kNone), 10),
            "0+10:interleave/0/1/4");
  EXPECT_EQ(ranges(plan_memory(traits(kBlocked), all, false, 4), 10),
            "0+4:prefer/0 4+3:prefer/1 7+3:prefer/4");
  EXPECT_EQ(ranges(plan_memory(traits(kBlocked), all, false, 4), 2), "0+1:prefer/0 1+1:prefer/1");
  // All memory is the default space: a full node is no reason to fail, whatever the fallback.
  for (const uint8_t fallback : {kNullFallback, kAbortFallback, kAllocatorFallback}) {
    const MemoryPlan plan = plan_memory(traits(kNearest, fallback), all, false, 4);
    EXPECT_FALSE(plan.strict);
    EXPECT_EQ(ranges(plan, 10), "0+10:prefer/4");
  }
}

TEST(Plans, OfASpaceOfItsOwn) {
  const NodeSet fast = set_of({1, 3});
  EXPECT_EQ(ranges(plan_memory(traits(kEnvironment), fast, true, kNone), 8), "0+8:prefer-many/1/3");
  EXPECT_EQ(ranges(plan_memory(traits(kNearest), fast, true, 3), 8), "0+8:prefer/3");
  EXPECT_EQ(ranges(plan_memory(traits(kInterleaved), fast, true, kNone), 8), "0+8:interleave/1/3");
  EXPECT_EQ(ranges(plan_memory(traits(kBlocked), fast, true, 3), 8), "0+4:prefer/1 4+4:prefer/3");
  // With another fallback than the default memory, nothing may spill into it.
  for (const uint8_t fallback : {kNullFallback, kAbortFallback, kAllocatorFallback}) {
    EXPECT_EQ(ranges(plan_memory(traits(kEnvironment, fallback), fast, true, kNone), 8),
              "0+8:bind/1/3");
    EXPECT_EQ(ranges(plan_memory(traits(kNearest, fallback), fast, true, 3), 8), "0+8:bind/1/3@3");
    EXPECT_EQ(ranges(plan_memory(traits(kBlocked, fallback), fast, true, 3), 8),
              "0+4:bind/1/3@1 4+4:bind/1/3@3");
    EXPECT_TRUE(plan_memory(traits(kInterleaved, fallback), fast, true, 3).strict);
  }
}

TEST(Plans, OfPagesThatBlocksShare) {
  const NodeSet all = set_of({0, 1});
  EXPECT_EQ(ranges(plan_of_page(plan_memory(traits(kBlocked), all, false, 1), 1), 4),
            "0+4:prefer/1");
  EXPECT_EQ(ranges(plan_of_page(plan_memory(traits(kInterleaved), all, false, 1), 1), 4),
            "0+4:interleave/0/1");
}

TEST(Plans, WithoutNodesAskForNothing) {
  for (const uint8_t partition : {kEnvironment, kNearest, kBlocked, kInterleaved}) {
    const MemoryPlan plan = plan_memory(traits(partition), {}, false, kNone);
    EXPECT_EQ(plan.kind, Kind::kAnywhere);
    EXPECT_EQ(n_ranges(plan, 10), 0u);
  }
}

// The parts of a blocked block cover it, in order, and differ by a page at most.
TEST(Plans, BlockedPartsCoverTheBlock) {
  for (uint32_t nodes = 1; nodes <= 9; nodes++) {
    NodeSet set;
    for (uint32_t n = 0; n < nodes; n++) set.add(n * 3);
    const MemoryPlan plan = plan_memory(traits(kBlocked), set, false, 0);
    for (size_t pages = 1; pages < 50; pages++) {
      size_t at = 0;
      for (uint32_t i = 0; i < n_ranges(plan, pages); i++) {
        const RangePolicy range = range_of(plan, pages, i);
        EXPECT_EQ(range.first_page, at);
        EXPECT_GE(range.pages, 1u);
        EXPECT_LE(range.pages, (pages + nodes - 1) / nodes);
        EXPECT_EQ(list(range.nodes), Nodes{i * 3});
        at += range.pages;
      }
      EXPECT_EQ(at, pages);
    }
  }
}

TEST(Room, IsWhatIsFreeAndWhatFilesCanGive) {
  EXPECT_EQ(room_in("Node 0 MemTotal:  1000 kB\nNode 0 MemFree:     30 kB\n"
                    "Node 0 Inactive:  500 kB\nNode 0 Inactive(file):  12 kB\n"),
            42u << 10);
  EXPECT_EQ(room_in(""), 0u);
  EXPECT_TRUE(nodes_have_room(set_of({0}), 4096));
  EXPECT_FALSE(nodes_have_room(set_of({0}), SIZE_MAX / 2));
  EXPECT_TRUE(nodes_have_room(set_of({1000}), SIZE_MAX / 2)) << "nobody can tell";
}

}  // namespace
}  // namespace bosk::omp
