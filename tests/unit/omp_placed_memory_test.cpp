// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans carried out: what the kernel says of the pages. Machines with one node will do.
#include "omp/placed_memory.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pages.h"

namespace bosk::omp {
namespace {

using topology::kNone;
using Kind = MemoryPlan::Kind;

constexpr int kPreferredMany = 5;

struct Policy {
  int mode = -1;
  NodeSet nodes;
};

/// Mode -1: the kernel does not say.
Policy policy_at(const void* address) {
  Policy policy;
  if (syscall(SYS_get_mempolicy, &policy.mode, policy.nodes.words,
              static_cast<unsigned long>(NodeSet::kMost), address, MPOL_F_ADDR) != 0) {
    policy.mode = -1;
  }
  return policy;
}

/// A node that may be bound to; kNone: this kernel or this sandbox has no policies.
uint32_t a_node() {
  NodeSet allowed;
  if (syscall(SYS_get_mempolicy, nullptr, allowed.words, static_cast<unsigned long>(NodeSet::kMost),
              nullptr, MPOL_F_MEMS_ALLOWED) != 0) {
    return kNone;
  }
  return allowed.next(0);
}

MemoryPlan plan_on(Kind kind, uint32_t node, bool strict, uint32_t home) {
  MemoryPlan plan;
  plan.kind = kind;
  plan.nodes.add(node);
  plan.strict = strict;
  plan.home = home;
  return plan;
}

/// The size of the address space.
long mapped_pages() {
  FILE* file = fopen("/proc/self/statm", "r");
  long pages = -1;
  if (file == nullptr || fscanf(file, "%ld", &pages) != 1) _exit(5);
  fclose(file);
  return pages;
}

class PlacedMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (node_ == kNone) GTEST_SKIP() << "no memory policies here";
  }
  const uint32_t node_ = a_node();
};

TEST_F(PlacedMemory, HasThePolicyOfItsPlan) {
  const struct {
    MemoryPlan plan;
    int mode;
  } cases[] = {
      {plan_on(Kind::kOnNodes, node_, true, kNone), MPOL_BIND},
      {plan_on(Kind::kOnNodes, node_, true, node_), MPOL_BIND},
      {plan_on(Kind::kOnNodes, node_, false, kNone), kPreferredMany},
      {plan_on(Kind::kOnNodes, node_, false, node_), MPOL_PREFERRED},
      {plan_on(Kind::kInterleaved, node_, false, kNone), MPOL_INTERLEAVE},
      {plan_on(Kind::kInterleaved, node_, true, kNone), MPOL_INTERLEAVE},
      {plan_on(Kind::kBlocked, node_, false, kNone), MPOL_PREFERRED},
      {plan_on(Kind::kBlocked, node_, true, kNone), MPOL_BIND},
      {MemoryPlan{}, MPOL_DEFAULT},
  };
  const size_t page = page_size();
  for (const auto& c : cases) {
    for (const size_t pages : {1, 2, 33}) {
      char* at = static_cast<char*>(map_placed(pages * page, 1, 0, c.plan, false));
      ASSERT_NE(at, nullptr) << c.mode;
      for (size_t i = 0; i < pages; i++) {
        EXPECT_EQ(at[i * page], 0);
        at[i * page] = 1;
        const Policy policy = policy_at(at + i * page);
        // Linux before 5.15 knows one node to prefer only.
        const bool older = c.mode == kPreferredMany && policy.mode == MPOL_PREFERRED;
        EXPECT_TRUE(policy.mode == c.mode || older) << policy.mode << " for " << c.mode;
        if (c.mode != MPOL_DEFAULT) {
          EXPECT_EQ(policy.nodes.count(), 1u);
          EXPECT_TRUE(policy.nodes.has(node_));
        }
      }
      base::unmap_pages(at, pages * page);
    }
  }
}

TEST_F(PlacedMemory, IsAlignedWhereItIsAskedFor) {
  const size_t page = page_size();
  const MemoryPlan plan = plan_on(Kind::kInterleaved, node_, false, kNone);
  for (size_t alignment = 1; alignment <= 1u << 24; alignment *= 4) {
    const size_t offset = 32;
    const size_t bytes = 3 * page;
    char* at = static_cast<char*>(map_placed(bytes, alignment, offset, plan, false));
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % page, 0u);
    const uintptr_t aligned =
        (reinterpret_cast<uintptr_t>(at) + offset + alignment - 1) & ~(alignment - 1);
    EXPECT_LE(aligned - reinterpret_cast<uintptr_t>(at), page) << "to " << alignment;
    memset(at, 1, bytes);
    EXPECT_EQ(policy_at(at + bytes - 1).mode, MPOL_INTERLEAVE);
    base::unmap_pages(at, bytes);
  }
}

TEST_F(PlacedMemory, IsNotHadWhereItCannotBe) {
  const size_t page = page_size();
  EXPECT_EQ(map_placed(SIZE_MAX & ~(page - 1), 1 << 20, 32, {}, false), nullptr);
  // There is no such node.
  EXPECT_EQ(map_placed(page, 1, 0, plan_on(Kind::kOnNodes, 1000, false, 1000), false), nullptr);
  EXPECT_EQ(map_placed(page, 1, 0, plan_on(Kind::kInterleaved, 1000, false, kNone), false),
            nullptr);
  // More than the node has room for would get the process killed.
  const size_t huge = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page;
  void* elsewhere = map_placed(huge, 1, 0, {}, false);
  if (elsewhere == nullptr) GTEST_SKIP() << "not even without a binding: overcommit is off";
  base::unmap_pages(elsewhere, huge);
  EXPECT_EQ(map_placed(huge, 1, 0, plan_on(Kind::kOnNodes, node_, true, kNone), false), nullptr);
}

TEST(PinnedMemory, IsRefusedAndLeavesNothingBehind) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) _exit(1);
    // Limits on locked memory do not hold for root.
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
    const long before = mapped_pages();
    for (int i = 0; i < 100; i++) {
      if (map_placed(size_t{1} << 22, 1 << 21, 32, {}, true) != nullptr) _exit(3);
    }
    if (mapped_pages() > before + 1024) _exit(4);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace bosk::omp
