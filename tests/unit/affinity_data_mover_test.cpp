// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages go where they are used: on an invented kernel, whose pages are where it says, and huge pages go whole.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <random>
#include <set>
#include <string_view>
#include <vector>

#include "affinity/acting/data_mover.h"
#include "affinity/acting/page_system.h"
#include "affinity/learner.h"

namespace bosk::affinity {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHuge = 512 * kPage;
constexpr uint64_t kBase = 0x7f0000000000;
constexpr double kSecond = 1e9;
constexpr pid_t kProcess = 77;
constexpr int kFirstNode = 3;  // the kernel's numbers are not ours

/// Memory from kBase on.
class InventedKernel : public PageSystem {
 public:
  explicit InventedKernel(uint32_t pages) : where(pages, kFirstNode) {}

  long move(pid_t process, std::span<const uint64_t> addresses, std::span<const int> nodes,
            std::span<int> status) override {
    if (error != 0) return error;
    if (process != kProcess) return -ESRCH;
    ++(nodes.empty() ? queries : calls);
    if (nodes.empty()) asked += addresses.size();
    for (size_t i = 0; i < addresses.size(); ++i) {
      const uint64_t page = (addresses[i] - kBase) / kPage;
      if (addresses[i] < kBase || page >= where.size()) {
        status[i] = -ENOENT;
        continue;
      }
      if (!nodes.empty() && pinned.contains(page)) {
        status[i] = -EBUSY;
        continue;
      }
      if (!nodes.empty()) {
        const uint64_t huge = page / 512;
        const bool goes_whole = huge_pages.contains(huge);
        for (uint64_t each = goes_whole ? huge * 512 : page;
             each < (goes_whole ? huge * 512 + 512 : page + 1); ++each) {
          moved += where[each] != nodes[i];
          where[each] = nodes[i];
        }
      }
      status[i] = where[page];
    }
    return 0;
  }
  bool is_placed(pid_t, uint64_t address, double) override {
    return placed.contains((address - kBase) / kHuge) ||
           placed_pages.contains((address - kBase) / kPage);
  }
  bool is_huge(pid_t, uint64_t address) override {
    return knows_huge && huge_pages.contains((address - kBase) / kHuge);
  }
  bool split(pid_t, uint64_t address) override {
    if (may_split) huge_pages.erase((address - kBase) / kHuge);
    return may_split;
  }

  pid_t parent_of(pid_t) override { return parent; }

  uint32_t on(int node, uint64_t begin, uint64_t end) const {
    uint32_t found = 0;
    for (uint64_t page = begin; page < end; ++page) found += where[page] == kFirstNode + node;
    return found;
  }

  std::vector<int> where;
  std::set<uint64_t> huge_pages, placed, placed_pages, pinned;
  bool knows_huge = true, may_split = true;
  long error = 0;
  pid_t parent = 1;
  uint32_t moved = 0;
  int calls = 0, queries = 0;
  size_t asked = 0;  // pages
};

class Mover : public testing::Test {
 protected:
  explicit Mover(uint32_t pages = 2048)
      : kernel(pages),
        learner(NodeOfCpu{{0, 1, 2, 3}, 4}, Learner::kRecentAccesses),
        mover(&kernel, &learner.pages(),
              {kFirstNode, kFirstNode + 1, kFirstNode + 2, kFirstNode + 3}) {}

  /// `cpu` is a thread and a node as well.
  void write(uint64_t page, uint16_t cpu, int times = 2) {
    const Access access = {0, kBase + page * kPage, cpu + 100U, 5, cpu, AccessKind::kWrite};
    for (int i = 0; i < times; ++i)
      if (const uint32_t node = learner.add(access); node != kNoNode)
        mover.prefers(kProcess, access.address, key_of(access), node);
  }
  void act() {
    now += .2 * kSecond;
    for (int i = 0; i < 100 && mover.act(now); ++i) {
    }
  }

  InventedKernel kernel;
  Learner learner;
  DataMover mover;
  double now = 1000 * kSecond;
};

TEST_F(Mover, APageGoesToWhoUsesIt) {
  write(7, 2);
  write(8, 1, 1);
  act();
  EXPECT_EQ(kernel.where[7], kFirstNode + 2);
  EXPECT_EQ(kernel.where[8], kFirstNode) << "once is not enough";
  EXPECT_EQ(kernel.moved, 1U);
  EXPECT_EQ(mover.counts().moved, 1U);
}

TEST_F(Mover, WhatIsThereAlreadyIsNotMovedAndNotAskedForAgain) {
  write(7, 0);
  act();
  EXPECT_EQ(kernel.calls, 0);
  const int queries = kernel.queries;
  write(7, 0, 20);
  act();
  EXPECT_EQ(kernel.queries, queries);
}

TEST_F(Mover, ThoseBetweenTwoOfOneOwnerGoAlong) {
  write(512, 1);
  write(600, 1);
  write(601, 2, 2);  // what was seen says otherwise
  write(700, 1);
  write(1000, 1);  // too far away
  act();
  EXPECT_EQ(kernel.on(1, 512, 601), 89U);
  EXPECT_EQ(kernel.where[601], kFirstNode + 2);
  EXPECT_EQ(kernel.on(1, 602, 700), 0U);
  EXPECT_EQ(kernel.on(1, 700, 1001), 2U);
}

TEST_F(Mover, AGapWithAnotherUserInItIsNotFilled) {
  act();
  write(0, 1);
  write(10, 3, 1);
  write(20, 1);
  write(30, 1, 1);
  write(40, 1);
  act();
  EXPECT_EQ(kernel.on(1, 0, 20), 1U);
  EXPECT_EQ(kernel.on(1, 20, 41), 21U);
}

TEST_F(Mover, AHugePageGoesAsOne) {
  kernel.huge_pages = {1};
  for (uint64_t page = 520; page < 530; ++page) write(page, 3);
  act();
  EXPECT_EQ(kernel.on(3, 512, 1024), 512U);
  EXPECT_EQ(kernel.moved, 512U);
  EXPECT_EQ(mover.counts().moved, 512U);
}

TEST_F(Mover, AHugePageOfSeveralUsersIsSplit) {
  kernel.huge_pages = {1};
  for (uint64_t page = 512; page < 532; ++page) write(page, 3);
  for (uint64_t page = 700; page < 720; ++page) write(page, 2);
  act();
  EXPECT_EQ(kernel.on(3, 512, 532), 20U);
  EXPECT_EQ(kernel.on(2, 700, 720), 20U);
  EXPECT_EQ(kernel.on(0, 512, 1024), 512U - 40);
}

/// Each time that the kernel joins them, on the node of most; for as long as it does.
TEST_F(Mover, WhatTheKernelJoinsAgainIsSplitAgain) {
  kernel.huge_pages = {1};
  for (uint64_t page = 0; page < 512; page += 16) write(512 + page, page < 200 ? 1 : 2, 4);
  act();
  ASSERT_EQ(kernel.on(1, 512, 704), 192U);
  for (int times = 1; times <= 12; ++times) {
    kernel.huge_pages = {1};
    std::fill(kernel.where.begin() + 512, kernel.where.begin() + 1024, kFirstNode + 2);
    act();
    EXPECT_EQ(kernel.on(1, 512, 704), 192U) << times;
    EXPECT_EQ(kernel.on(2, 720, 1024), 304U) << times;
    EXPECT_EQ(mover.counts().joined, static_cast<uint64_t>(times));
  }
  EXPECT_EQ(mover.counts().bouncing, 0U);
}

TEST_F(Mover, OneThatMayNotBeSplitStays) {
  kernel.huge_pages = {1};
  kernel.may_split = false;
  for (int round = 0; round < 10; ++round) {
    for (uint64_t page = 512; page < 532; ++page) write(page, 3);
    for (uint64_t page = 700; page < 720; ++page) write(page, 2);
    act();
  }
  EXPECT_EQ(kernel.moved, 0U);
  EXPECT_EQ(mover.counts().unsplit, 1U);
}

/// A huge page that nobody has told of: it is found by its pages going together, and then stays put. What that has moved is bounded.
TEST_F(Mover, OneThatNobodyKnowsOfIsFound) {
  kernel.huge_pages = {1};
  kernel.knows_huge = false;
  kernel.may_split = false;
  for (int round = 0; round < 30; ++round) {
    for (uint64_t page = 512; page < 532; ++page) write(page, 3);
    for (uint64_t page = 700; page < 720; ++page) write(page, 2);
    act();
  }
  EXPECT_LE(kernel.moved, 50U * 512) << "six seconds";
  EXPECT_EQ(mover.counts().unsplit, 1U);
  const uint32_t moved = kernel.moved;
  for (int round = 0; round < 30; ++round) {
    for (uint64_t page = 512; page < 532; ++page) write(page, 3);
    for (uint64_t page = 700; page < 720; ++page) write(page, 2);
    act();
  }
  EXPECT_EQ(kernel.moved, moved);
}

TEST_F(Mover, APageThatBouncesIsLeftAlone) {
  for (int round = 0; round < 20; ++round) {
    write(5, static_cast<uint16_t>(round % 2 + 1), 40);
    act();
  }
  EXPECT_EQ(kernel.moved, 3U);
  EXPECT_EQ(mover.counts().bouncing, 1U);
}

TEST_F(Mover, WhatTheProgramHasPlacedStays) {
  kernel.placed = {1};
  write(600, 3);
  write(100, 3);
  act();
  EXPECT_EQ(kernel.moved, 1U);
  EXPECT_EQ(kernel.where[600], kFirstNode);
  EXPECT_EQ(mover.counts().placed, 1U);
}

TEST_F(Mover, WhatTheProgramHasPlacedMayBeginWithinARegion) {
  kernel.placed_pages = {600, 601, 602};
  for (int round = 0; round < 200; ++round) {  // 40 s: it is said once
    write(600, 3);
    write(604, 3);
    act();
  }
  EXPECT_EQ(kernel.on(0, 600, 603), 3U);
  EXPECT_EQ(kernel.on(3, 603, 605), 2U) << "and what lies between goes along";
  EXPECT_EQ(mover.counts().placed, 1U);
}

TEST_F(Mover, WhatCannotBeMovedIsTriedThreeTimesAndSaid) {
  kernel.pinned = {9};
  for (int round = 0; round < 20; ++round) {
    write(9, 3);
    write(11, 3);
    act();
  }
  EXPECT_EQ(kernel.where[11], kFirstNode + 3);
  EXPECT_EQ(mover.counts().refused, 1U);
  EXPECT_EQ(mover.counts().why, EBUSY);
  EXPECT_LE(kernel.calls, 6);
}

TEST_F(Mover, WhereNothingMayBeMovedNothingIsTriedAgain) {
  kernel.error = -EPERM;
  write(9, 3);
  act();
  kernel.error = 0;
  write(10, 3);
  act();
  EXPECT_TRUE(mover.counts().is_forbidden);
  EXPECT_EQ(kernel.moved, 0U);
}

TEST_F(Mover, AProcessThatHasEndedIsForgotten) {
  write(9, 3);
  kernel.error = -ESRCH;
  act();
  kernel.error = 0;
  EXPECT_FALSE(mover.counts().is_forbidden);
  mover.process_ended(kProcess);
  act();
  EXPECT_EQ(kernel.moved, 0U);
}

/// All use all: nothing moves but by chance, and soon no more.
class LargeMover : public Mover {
 protected:
  LargeMover() : Mover(512 * 64) {}
};

/// Of a large program whose memory is in place few regions are asked about at a time, and one that is to move need not wait.
TEST_F(LargeMover, LookingAgainDoesNotKeepOthersWaiting) {
  for (uint64_t region = 0; region < 64; ++region) write(region * 512, 2);
  act();
  ASSERT_EQ(mover.counts().moved, 64U);
  now += 6 * kSecond;
  act();
  const size_t before = kernel.asked;
  for (uint64_t region = 0; region < 64; ++region) write(region * 512, 2);
  write(9, 3);
  mover.act(now += .2 * kSecond);
  EXPECT_EQ(kernel.where[9], kFirstNode + 3);
  EXPECT_LE(kernel.asked - before, 16U);
}

TEST_F(Mover, AProcessThatPlacesItsMemoryIsLeftAloneAndSoAreItsChildren) {
  write(7, 2);
  mover.leave_process(kProcess);
  write(9, 2);
  act();
  EXPECT_EQ(kernel.calls, 0);
  EXPECT_EQ(mover.counts().left, 1U);
  // Another one of that number.
  mover.process_ended(kProcess);
  mover.process_began(kProcess);
  write(9, 2);
  act();
  EXPECT_EQ(kernel.where[9], kFirstNode + 2);
  kernel.parent = 55;
  mover.leave_process(55);
  mover.process_began(kProcess);
  write(11, 2);
  act();
  EXPECT_EQ(kernel.where[11], kFirstNode);
}

/// Somebody else has moved them: seen when they are used, after a while.
TEST_F(Mover, WhatOthersHaveMovedComesBack) {
  write(7, 2);
  act();
  ASSERT_EQ(kernel.where[7], kFirstNode + 2);
  kernel.where[7] = kFirstNode + 1;
  now += 6 * kSecond;
  act();
  write(7, 2);
  act();
  EXPECT_EQ(kernel.where[7], kFirstNode + 2);
}

TEST_F(Mover, WhatEverybodyUsesStays) {
  std::minstd_rand random(1);
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 2000; ++i)
      write(random() % 2048, static_cast<uint16_t>(random() / 7 % 4), 1);
    act();
  }
  EXPECT_LT(kernel.moved, 4 * 2048U);
}

/// Four nodes' parts of memory that one thread has touched first, seen here and there: nearly all of it comes home, and follows when the parts change.
TEST_F(Mover, PartsComeHomeAndFollow) {
  std::minstd_rand random(1);
  for (const int phase : {0, 1}) {
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 40; ++i) {
        const uint64_t page = random() % 2048;
        write(page, static_cast<uint16_t>((page / 512 + static_cast<uint64_t>(phase)) % 4), 10);
      }
      act();
    }
    uint32_t home = 0;
    for (int part = 0; part < 4; ++part)
      home += kernel.on((part + phase) % 4, static_cast<uint64_t>(part) * 512,
                        static_cast<uint64_t>(part) * 512 + 512);
    EXPECT_GE(home, 2048U * 95 / 100) << "phase " << phase;
  }
}

TEST(MappedPolicies, LinesOfNumaMaps) {
  constexpr std::string_view text =
      "00400000 default file=/bin/true mapped=1 N0=1\n"
      "7f0000000000 bind:1 anon=4 dirty=4 N1=4\n"
      "7f0000004000 local anon=1 N0=1\n"
      "7f0000100000 interleave:0-3 anon=9\n"
      "nonsense\n"
      "7f0000200000 default anon=1 N0=1\n"
      "7ffd00000000 prefer (many):2";
  const MappedPolicies policies({text.data(), text.size()});
  EXPECT_FALSE(policies.is_placed(0x1000));
  EXPECT_FALSE(policies.is_placed(0x400000));
  EXPECT_TRUE(policies.is_placed(0x7f0000001000));
  EXPECT_FALSE(policies.is_placed(0x7f0000004000));
  EXPECT_TRUE(policies.is_placed(0x7f0000100000));
  EXPECT_FALSE(policies.is_placed(0x7f0000200000));
  EXPECT_TRUE(policies.is_placed(0x7ffd00000123));
  EXPECT_FALSE(MappedPolicies({}).is_placed(0x400000));
}

TEST(Kernel, KnowsTheParentOfAProcess) {
  EXPECT_EQ(Kernel().parent_of(getpid()), getppid());
  EXPECT_EQ(Kernel().parent_of(1 << 30), 0);
}

TEST(Kernel, SaysWherePagesOfAProcessAre) {
  std::vector<char> memory(16 * kPage, 1);
  Kernel kernel;
  const uint64_t page = (reinterpret_cast<uint64_t>(memory.data()) + kPage) / kPage * kPage;
  const std::vector<uint64_t> pages = {page, page + kPage};
  std::vector<int> status(2, -1);
  const long done = kernel.move(getpid(), pages, {}, status);
  if (done == -ENOSYS || done == -EPERM) GTEST_SKIP() << "move_pages is not allowed here";
  ASSERT_EQ(done, 0);
  EXPECT_GE(status[0], 0);
  EXPECT_EQ(status[0], status[1]);
  EXPECT_FALSE(kernel.is_placed(getpid(), page, 0));
  // To where it is: nothing changes, and nothing fails.
  const std::vector<int> nodes = {status[0], status[1]};
  EXPECT_EQ(kernel.move(getpid(), pages, nodes, status), 0);
}

}  // namespace
}  // namespace bosk::affinity
