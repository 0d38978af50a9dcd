// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries of invented machines, and arguments that are wrong.
#include "threads/machine_queries.h"

#include <bosk/error.h>
#include <limits.h>

#include <algorithm>

#include "topology_test_support.h"

namespace bosk::threads {
namespace {

using topology::synthetic;

constexpr const char* kMachines[] = {
    "pu:1",
    "pu:3",
    "node:4 core:4 pu:1",
    "node:2(memory=3GiB) l3:2 core:3 pu:2",
    "package:2 node:2 l2:2 core:2 pu:2",
};

TEST(MachineQueries, CountWhatThereIs) {
  const auto machine = synthetic("package:2 node:2(memory=3GiB) l3:2 core:3 pu:2");
  const struct {
    const char* name;
    int domains;
    int pus;
  } levels[] = {{"machine", 1, 48}, {"package", 2, 24}, {"node", 4, 12},
                {"l3", 8, 6},       {"core", 24, 2},    {"pu", 48, 1}};
  ASSERT_EQ(machine->n_levels, 6u);
  for (int level = 0; level < 6; ++level) {
    EXPECT_STREQ(name_of_level(*machine, level), levels[level].name);
    EXPECT_EQ(level_by_name(*machine, levels[level].name), level);
    EXPECT_EQ(domains_of_level(*machine, level), levels[level].domains);
    EXPECT_EQ(pus_in_domain(*machine, level, levels[level].domains - 1), levels[level].pus);
    EXPECT_EQ(first_pu_of_domain(*machine, level, levels[level].domains - 1),
              48 - levels[level].pus);
  }
  EXPECT_EQ(level_by_name(*machine, "Socket"), 1);
  EXPECT_EQ(level_by_name(*machine, "NUMA"), 2);
  EXPECT_EQ(level_by_name(*machine, "llc"), 3);
  EXPECT_EQ(level_by_name(*machine, "l2"), BOSK_ENOENT);
  EXPECT_EQ(level_by_name(*machine, "wurst"), BOSK_ENOENT);
  EXPECT_EQ(level_by_name(*machine, nullptr), BOSK_EINVAL);
  EXPECT_EQ(machine->n_nodes, 4u);
  EXPECT_EQ(node_of(*machine, 13), 1);
  EXPECT_EQ(node_bytes(*machine, 1), int64_t{3} << 30);
  EXPECT_EQ(node_os_number(*machine, 3), 3);
  EXPECT_EQ(os_number(*machine, 2, 3), 3);
  EXPECT_EQ(node_distance(*machine, 2, 2), 10);
  EXPECT_GT(node_distance(*machine, 0, 3), 10);
}

TEST(MachineQueries, TellWhatTwoShare) {
  const auto machine = synthetic("node:2 l3:2 core:2 pu:2");
  const struct {
    int pu;
    int other;
    int distance;
    const char* shared;
  } pairs[] = {{5, 5, 0, "pu"},   {4, 5, 1, "core"},    {4, 6, 2, "l3"},
               {4, 1, 3, "node"}, {4, 8, 4, "machine"}, {15, 0, 4, "machine"}};
  for (const auto& pair : pairs) {
    EXPECT_EQ(pu_distance(*machine, pair.pu, pair.other), pair.distance) << pair.shared;
    EXPECT_EQ(pu_distance(*machine, pair.other, pair.pu), pair.distance) << pair.shared;
    // Packages divide nothing here, and are outside of the nodes: the innermost level counts.
    EXPECT_STREQ(
        name_of_level(*machine, shared_level(*machine, pair.pu, pair.other)),
        pair.shared[0] == 'm' && name_of_level(*machine, 1)[0] == 'p' ? "package" : pair.shared);
  }
  int order[16];
  ASSERT_EQ(neighbours(*machine, 6, order, 16), 16);
  const int expected[] = {6, 7, 4, 5, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15};
  EXPECT_TRUE(std::equal(order, order + 16, expected));
  EXPECT_EQ(neighbours(*machine, 6, order, 3), 3);
  EXPECT_EQ(neighbours(*machine, 6, order, 0), 0);
}

TEST(MachineQueries, HoldTogetherOnAnyMachine) {
  for (const char* words : kMachines) {
    const auto machine = synthetic(words);
    const int pus = static_cast<int>(machine->n_pus);
    const int levels = static_cast<int>(machine->n_levels);
    for (int level = 0; level < levels; ++level) {
      int sum = 0;
      for (int domain = 0; domain < domains_of_level(*machine, level); ++domain) {
        const int first = first_pu_of_domain(*machine, level, domain);
        const int count = pus_in_domain(*machine, level, domain);
        EXPECT_EQ(first, sum) << words;
        for (int pu = first; pu < first + count; ++pu)
          EXPECT_EQ(domain_of_pu(*machine, level, pu), domain) << words << ", level " << level;
        sum += count;
        EXPECT_EQ(pus_in_domain(*machine, level, domains_of_level(*machine, level)), BOSK_EINVAL);
      }
      EXPECT_EQ(sum, pus) << words << ", level " << level;
    }
    for (int a = 0; a < pus; ++a) {
      std::vector<int> order(static_cast<size_t>(pus) + 1, -1);
      ASSERT_EQ(neighbours(*machine, a, order.data(), pus + 1), pus);
      EXPECT_EQ(order[0], a);
      for (int i = 1; i < pus; ++i)
        EXPECT_LE(pu_distance(*machine, a, order[static_cast<size_t>(i) - 1]),
                  pu_distance(*machine, a, order[static_cast<size_t>(i)]));
      std::sort(order.begin(), order.end() - 1);
      for (int i = 0; i < pus; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
      for (int b = 0; b < pus; ++b) {
        const int shared = shared_level(*machine, a, b);
        EXPECT_EQ(domain_of_pu(*machine, shared, a), domain_of_pu(*machine, shared, b));
        if (shared + 1 < levels) {
          EXPECT_NE(domain_of_pu(*machine, shared + 1, a), domain_of_pu(*machine, shared + 1, b));
        }
      }
      EXPECT_EQ(pu_of_cpu(*machine, os_number(*machine, levels - 1, a)), a);
    }
  }
}

TEST(MachineQueries, RefuseNumbersOfNothing) {
  const auto machine = synthetic("node:2 core:2 pu:1");
  const int levels = static_cast<int>(machine->n_levels);
  int order[4];
  for (const int wrong : {-1, INT_MIN, INT_MAX, 4}) {
    EXPECT_EQ(domain_of_pu(*machine, 0, wrong), BOSK_EINVAL);
    EXPECT_EQ(pu_distance(*machine, wrong, 0), BOSK_EINVAL);
    EXPECT_EQ(pu_distance(*machine, 0, wrong), BOSK_EINVAL);
    EXPECT_EQ(shared_level(*machine, 0, wrong), BOSK_EINVAL);
    EXPECT_EQ(neighbours(*machine, wrong, order, 4), BOSK_EINVAL);
    EXPECT_EQ(node_of(*machine, wrong), BOSK_EINVAL);
    EXPECT_EQ(node_bytes(*machine, wrong), BOSK_EINVAL);
    EXPECT_EQ(node_os_number(*machine, wrong), BOSK_EINVAL);
    EXPECT_EQ(node_distance(*machine, 0, wrong), BOSK_EINVAL);
    EXPECT_EQ(pus_in_domain(*machine, levels - 1, wrong), BOSK_EINVAL);
    EXPECT_EQ(first_pu_of_domain(*machine, levels - 1, wrong), BOSK_EINVAL);
    EXPECT_EQ(os_number(*machine, levels - 1, wrong), BOSK_EINVAL);
  }
  for (const int wrong : {-1, INT_MIN, INT_MAX, levels}) {
    EXPECT_EQ(domains_of_level(*machine, wrong), BOSK_EINVAL);
    EXPECT_EQ(name_of_level(*machine, wrong), nullptr);
    EXPECT_EQ(domain_of_pu(*machine, wrong, 0), BOSK_EINVAL);
    EXPECT_EQ(os_number(*machine, wrong, 0), BOSK_EINVAL);
  }
  EXPECT_EQ(neighbours(*machine, 0, nullptr, 4), BOSK_EINVAL);
  EXPECT_EQ(neighbours(*machine, 0, order, -1), BOSK_EINVAL);
  EXPECT_EQ(pu_of_cpu(*machine, -1), BOSK_EINVAL);
  EXPECT_EQ(pu_of_cpu(*machine, 4), BOSK_ENOENT);
}

}  // namespace
}  // namespace bosk::threads
