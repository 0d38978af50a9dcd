// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// On which machines it matters where workers are.
#include "omp/several_domains.h"

#include <gtest/gtest.h>

#include "topology_test_support.h"

namespace {

using namespace bosk;
using namespace bosk::topology;

TEST(SeveralMemories, AreNodesHoweverFewCoresTheyHave) {
  for (const char* several : {"node:2 core:1 pu:1", "node:4 core:1 pu:2",
                              "package:1 node:2 core:1 pu:1", "node:2 core:4 pu:1"})
    EXPECT_TRUE(omp::has_several_memories(*synthetic(several))) << several;
  for (const char* one : {"node:1 core:2 pu:1", "node:1 core:1 pu:2", "pu:1"})
    EXPECT_FALSE(omp::has_several_memories(*synthetic(one))) << one;
}

TEST(SeveralMemories, AreCachesThatSeveralCoresShare) {
  EXPECT_TRUE(omp::has_several_memories(*synthetic("node:1 l3:2 core:2 pu:1")));
  // A virtual machine that tells of no common one.
  EXPECT_FALSE(omp::has_several_memories(*synthetic("node:1 l3:4 core:1 pu:1")));
  EXPECT_FALSE(omp::has_several_memories(*synthetic("node:1 l3:1 core:4 pu:1")));
}

}  // namespace
