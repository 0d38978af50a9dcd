// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Migration on a kernel that the test makes up (full nodes, pinned, shared, absent pages, forbidden nodes), and on the real one.
// Huge pages: memory_huge_pages_test.cpp.
#include "memory/migration.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "migration_support.h"

namespace bosk::memory {
namespace {

using testing::FakeKernel;
using testing::four_nodes;
using testing::kBase;
using testing::kPageSize;
using testing::Migrations;
using testing::RealMigration;

TEST_F(Migrations, CountEveryPageOnce) {
  fill(10, 0);
  page(3).node = 2;
  page(5).node = -1;
  std::vector<PageOutcome> outcomes(10, PageOutcome::kRefused);
  const Moved moved = migrate_pages(
      {.begin = at(0), .bytes = 10 * kPageSize, .node = 2, .outcomes = outcomes.data()});
  EXPECT_EQ(moved, (Moved{.moved = 8, .already = 1, .absent = 1}));
  EXPECT_TRUE(moved.complete());
  EXPECT_EQ(outcomes[3], PageOutcome::kAlready);
  EXPECT_EQ(outcomes[5], PageOutcome::kAbsent);
  EXPECT_EQ(outcomes[9], PageOutcome::kMoved);
  EXPECT_EQ(kernel_.node_at(9), 2);
  EXPECT_EQ(kernel_.moves, 1);
}

TEST_F(Migrations, AskNothingMoreWhereAllIsThere) {
  fill(100, 1);
  EXPECT_EQ(migrate_pages(at(0), 100 * kPageSize, 1), (Moved{.already = 100}));
  EXPECT_EQ(kernel_.moves, 0);
  EXPECT_LE(kernel_.queries, 2);
  EXPECT_LE(kernel_.asked, 125u);
}

TEST_F(Migrations, AskAboutFewPagesWhereAllHaveToGo) {
  fill(1024, 0);
  EXPECT_EQ(migrate_pages(at(0), 1024 * kPageSize, 1), (Moved{.moved = 1024}));
  EXPECT_EQ(kernel_.moves, 1);
  EXPECT_EQ(kernel_.queries, 1);
  EXPECT_LE(kernel_.asked, 1024u / 16);
  // Once more where a block of 2 MiB is cut, about a page in it and two beside.
  EXPECT_EQ(migrate_pages(at(0), 1000 * kPageSize, 2), (Moved{.moved = 1000}));
  EXPECT_EQ(kernel_.moves, 2);
  EXPECT_EQ(kernel_.queries, 3);
  EXPECT_LE(kernel_.asked, 1024u / 16 + 1000u / 16 + 4);
}

TEST_F(Migrations, AskAboutNoneOfAFewThatAreKnownToBeElsewhere) {
  fill(5, 0);
  const auto migrate = [](uintptr_t first, uintptr_t count) {
    return migrate_pages(
        {.begin = at(first), .bytes = count * kPageSize, .node = 1, .elsewhere = true});
  };
  EXPECT_EQ(migrate(0, 1), (Moved{.moved = 1}));
  EXPECT_EQ(kernel_.moves, 1);
  EXPECT_EQ(kernel_.queries, 1);  // could it be a part of a huge page?
  EXPECT_LE(kernel_.asked, 3u);
  EXPECT_EQ(kernel_.node_at(0), 1);
  // What was not known after all; one that is there counts as moved.
  page(2).node = -1;
  page(3).pinned = true;
  EXPECT_EQ(migrate(0, 5), (Moved{.moved = 3, .absent = 1, .refused = 1}));
  // Of many it is asked, by a sample.
  fill(100, 1);
  EXPECT_EQ(migrate(0, 100), (Moved{.already = 100}));
}

/// Whatever the step of the sample is: in turn over nodes is how memory lies that was interleaved.
TEST_F(Migrations, AskAboutAllWherePagesLieOnNodesInTurn) {
  for (const uintptr_t nodes : {2, 3, 4}) {
    for (uintptr_t i = 0; i < 1200; ++i) page(i).node = static_cast<int>(i % nodes);
    EXPECT_EQ(migrate_pages(at(0), 1200 * kPageSize, 1),
              (Moved{.moved = 1200 - 1200 / nodes, .already = 1200 / nodes}));
  }
}

TEST_F(Migrations, NoPageIsMissedByTheSample) {
  fill(200, 0);
  page(1).node = 3;
  page(2).node = -1;
  page(20).pinned = true;
  page(21).shared = true;
  EXPECT_EQ(migrate_pages(at(0), 200 * kPageSize, 3),
            (Moved{.moved = 197, .absent = 1, .refused = 2}));
  // Who wants to know it of each page gets it exactly.
  page(1).node = 3;
  for (uintptr_t i = 2; i < 200; ++i) page(i).node = 0;
  page(0).node = 0;
  std::vector<PageOutcome> outcomes(200);
  EXPECT_EQ(migrate_pages(
                {.begin = at(0), .bytes = 200 * kPageSize, .node = 3, .outcomes = outcomes.data()}),
            (Moved{.moved = 197, .already = 1, .refused = 2}));
  EXPECT_EQ(outcomes[1], PageOutcome::kAlready);
}

TEST_F(Migrations, TakePagesThatARangeOnlyTouches) {
  fill(3, 0);
  EXPECT_EQ(migrate_pages(static_cast<char*>(at(0)) + 4095, 2, 1).moved, 2u);
  EXPECT_EQ(kernel_.node_at(2), 0);
  EXPECT_EQ(migrate_pages(at(2), 0, 1).pages(), 0u);
  EXPECT_EQ(migrate_pages(reinterpret_cast<void*>(UINTPTR_MAX - 10), 100, 1).pages(), 0u);
}

TEST_F(Migrations, LeavePinnedPagesAndMoveTheRest) {
  fill(100, 0);
  for (const uintptr_t i : {0, 17, 99}) page(i).pinned = true;
  page(50).shared = true;
  page(51).shared = true;
  std::vector<PageOutcome> outcomes(100);
  const Moved moved = migrate_pages(
      {.begin = at(0), .bytes = 100 * kPageSize, .node = 3, .outcomes = outcomes.data()});
  EXPECT_EQ(moved, (Moved{.moved = 95, .refused = 5}));
  for (uintptr_t i = 0; i < 100; ++i) {
    const bool stuck = page(i).pinned || page(i).shared;
    EXPECT_EQ(outcomes[i], stuck ? PageOutcome::kRefused : PageOutcome::kMoved) << i;
    EXPECT_EQ(kernel_.node_at(i), stuck ? 0 : 3) << i;
  }
}

TEST_F(Migrations, FillANodeAndLeaveTheRestWhereItWas) {
  fill(100, 0);
  kernel_.room[2] = 30;
  const Moved moved = migrate_pages(at(0), 100 * kPageSize, 2);
  EXPECT_EQ(moved, (Moved{.moved = 30, .no_memory = 70}));
  EXPECT_FALSE(moved.complete());
  for (uintptr_t i = 0; i < 100; ++i) EXPECT_EQ(kernel_.node_at(i), i < 30 ? 2 : 0);
}

TEST_F(Migrations, OneFullNodeDoesNotKeepPagesFromOthers) {
  fill(90, 0);
  kernel_.room[1] = 0;
  kernel_.forbidden = {2};
  std::vector<NodeIndex> nodes(90);
  for (uint32_t i = 0; i < 90; ++i) nodes[i] = 1 + i / 10 % 3;
  const Moved moved =
      migrate_pages({.begin = at(0), .bytes = 90 * kPageSize, .nodes = nodes.data()});
  EXPECT_EQ(moved, (Moved{.moved = 30, .refused = 30, .no_memory = 30}));
}

TEST_F(Migrations, ForbiddenAndUnknownNodesAreRefused) {
  fill(20, 0);
  kernel_.forbidden = {2};
  EXPECT_EQ(migrate_pages(at(0), 20 * kPageSize, 2), (Moved{.refused = 20}));
  EXPECT_EQ(migrate_pages(at(0), 20 * kPageSize, 77), (Moved{.refused = 20}));
  EXPECT_EQ(migrate_pages(at(0), 20 * kPageSize, kNoNode), (Moved{.refused = 20}));
  EXPECT_EQ(kernel_.node_at(7), 0);
}

TEST_F(Migrations, TryBusyPagesAgainButNotForEver) {
  fill(10, 0);
  page(2).busy = 1;
  page(3).busy = 2;
  page(4).busy = 1000;
  EXPECT_EQ(migrate_pages(at(0), 10 * kPageSize, 1), (Moved{.moved = 9, .refused = 1}));
  EXPECT_EQ(kernel_.node_at(4), 0);
  EXPECT_GT(page(4).busy, 900);
}

TEST_F(Migrations, CountTheWholeOfAHugePage) {
  fill(1536, 0);
  for (uintptr_t i = 512; i < 1024; ++i) page(i).huge = 1;
  EXPECT_EQ(migrate_pages(at(0), 1536 * kPageSize, 1), (Moved{.moved = 1536}));
}

TEST_F(Migrations, GiveUpOnARangeFullOfPinnedPages) {
  // Every page has a run of its own: one call for each is not what anybody wants.
  constexpr uintptr_t kPages = 3000;
  fill(kPages, 0);
  for (uintptr_t i = 0; i < kPages; i += 2) page(i).pinned = true;
  std::vector<NodeIndex> nodes(kPages);
  for (uintptr_t i = 0; i < kPages; ++i) nodes[i] = 1 + i % 2;
  const Moved moved =
      migrate_pages({.begin = at(0), .bytes = kPages * kPageSize, .nodes = nodes.data()});
  EXPECT_EQ(moved.pages(), kPages);
  EXPECT_GE(moved.refused, kPages / 2);
  EXPECT_LE(kernel_.moves, 64);
}

TEST_F(Migrations, AKernelWithoutTheCallRefuses) {
  set_move_pages([](unsigned long, void**, const int*, int*) -> long { return -ENOSYS; });
  EXPECT_EQ(migrate_pages(at(0), 20 * kPageSize, 1), (Moved{.refused = 20}));
  NodeIndex nodes[20];
  EXPECT_FALSE(locate_pages(at(0), 20 * kPageSize, nodes));
}

TEST_F(Migrations, LocatePages) {
  fill(6, 3);
  page(1).node = -1;
  page(2).node = 1;
  NodeIndex nodes[6];
  ASSERT_TRUE(locate_pages(at(0), 6 * kPageSize, nodes));
  EXPECT_EQ(nodes[0], 3u);
  EXPECT_EQ(nodes[1], kNoNode);
  EXPECT_EQ(nodes[2], 1u);
}

/// Whatever is in the way: the outcomes tell where each page is.
TEST_F(Migrations, OutcomesAreTrueOfRandomMemory) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    kernel_.pages.clear();
    kernel_.room.clear();
    kernel_.forbidden.clear();
    const uintptr_t count = 1 + random() % 400;
    std::vector<int> before(count);
    for (uintptr_t i = 0; i < count; ++i) {
      FakeKernel::Page& p = page(i);
      p.node = random() % 8 == 0 ? -1 : static_cast<int>(random() % 4);
      p.pinned = random() % 20 == 0;
      p.shared = random() % 20 == 0;
      p.busy = random() % 20 == 0 ? static_cast<int>(random() % 5) : 0;
      before[i] = p.node;
    }
    if (random() % 2 == 0) kernel_.room[1] = static_cast<long>(random() % 100);
    if (random() % 4 == 0) kernel_.forbidden = {2};
    std::vector<NodeIndex> nodes(count);
    for (auto& node : nodes) node = random() % 16 == 0 ? random() % 4 : (seed / 3) % 4;
    std::vector<PageOutcome> outcomes(count);
    const Moved moved = migrate_pages({.begin = at(0),
                                       .bytes = count * kPageSize,
                                       .nodes = nodes.data(),
                                       .outcomes = outcomes.data()});
    ASSERT_EQ(moved.pages(), count);
    Moved counted;
    for (uintptr_t i = 0; i < count; ++i) {
      counted.count(outcomes[i]);
      const int target = static_cast<int>(nodes[i]);
      switch (outcomes[i]) {
        case PageOutcome::kMoved:
          ASSERT_NE(before[i], target) << seed << ": " << i;
          ASSERT_EQ(kernel_.node_at(i), target) << seed << ": " << i;
          break;
        case PageOutcome::kAlready:
          ASSERT_EQ(before[i], target) << seed << ": " << i;
          ASSERT_EQ(kernel_.node_at(i), target) << seed << ": " << i;
          break;
        case PageOutcome::kAbsent:
          ASSERT_EQ(before[i], -1) << seed << ": " << i;
          break;
        case PageOutcome::kRefused:
        case PageOutcome::kNoMemory:
        case PageOutcome::kUnsplit:
          ASSERT_EQ(kernel_.node_at(i), before[i]) << seed << ": " << i;
          ASSERT_NE(before[i], target) << seed << ": " << i;
          break;
      }
    }
    ASSERT_EQ(counted, moved) << seed;
  }
}

/// Where only the sums are wanted, some pages that were there may count as moved, and nothing else is inexact.
TEST_F(Migrations, SumsAreTrueOfRandomMemory) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    kernel_.pages.clear();
    kernel_.room.clear();
    const uintptr_t count = 1 + random() % 800;
    const uint32_t rare = 1u << random() % 12;
    uint64_t absent = 0;
    uint64_t there = 0;
    for (uintptr_t i = 0; i < count; ++i) {
      FakeKernel::Page& p = page(i);
      const bool odd = random() % rare == 0;
      p.node = !odd ? 3 : random() % 2 == 0 ? -1 : 1;
      p.pinned = random() % (rare * 4) == 0;
      p.shared = random() % (rare * 4) == 0;
      p.busy = random() % rare == 0 ? static_cast<int>(random() % 5) : 0;
      absent += p.node == -1;
      there += p.node == 1;
    }
    if (random() % 3 == 0) kernel_.room[1] = static_cast<long>(random() % 400);
    const Moved moved = migrate_pages(at(0), count * kPageSize, 1);
    uint64_t now = 0;
    for (uintptr_t i = 0; i < count; ++i) now += kernel_.node_at(i) == 1;
    ASSERT_EQ(moved.pages(), count) << seed;
    ASSERT_EQ(moved.moved + moved.already, now) << seed;
    ASSERT_EQ(moved.absent, absent) << seed;
    ASSERT_LE(moved.already, there) << seed;
    ASSERT_EQ(moved.refused + moved.no_memory, count - now - absent) << seed;
  }
}

TEST_F(Migrations, ACrewSharesOutLargeRanges) {
  constexpr uintptr_t kPages = 3 * 4096 + 1000;
  fill(kPages, 0);
  for (uintptr_t i = 0; i < kPages; i += 1000) page(i).pinned = true;
  struct Lent {
    NodeIndex node = kNoNode;
    uint32_t most = 0;
    uint32_t used = 0;
  } lent;
  const Crew crew{
      [](void* data, NodeIndex node, uint32_t most, void (*work)(void*), void* context) {
        auto* l = static_cast<Lent*>(data);
        l->node = node;
        l->most = most;
        l->used = std::min<uint32_t>(most, 3);
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < l->used; ++i) threads.emplace_back(work, context);
        for (auto& thread : threads) thread.join();
      },
      &lent};
  set_migration_crew(&crew);
  std::vector<PageOutcome> outcomes(kPages);
  EXPECT_EQ(
      migrate_pages(
          {.begin = at(0), .bytes = kPages * kPageSize, .node = 2, .outcomes = outcomes.data()}),
      (Moved{.moved = kPages - 14, .refused = 14}));
  EXPECT_EQ(lent.node, 2u);
  EXPECT_EQ(lent.most, 4u);
  for (uintptr_t i = 0; i < kPages; ++i)
    ASSERT_EQ(outcomes[i], i % 1000 == 0 ? PageOutcome::kRefused : PageOutcome::kMoved) << i;

  // With a node for each page, long runs go to the crew and the rest does not.
  lent = {};
  std::vector<NodeIndex> nodes(kPages, 3);
  nodes[0] = nodes[1] = nodes[kPages - 1] = 1;
  const Moved moved =
      migrate_pages({.begin = at(0), .bytes = kPages * kPageSize, .nodes = nodes.data()});
  EXPECT_EQ(moved, (Moved{.moved = kPages - 14, .refused = 14}));
  EXPECT_EQ(lent.node, 3u);
  EXPECT_EQ(kernel_.node_at(1), 1);
  EXPECT_EQ(kernel_.node_at(kPages - 1), 1);
  EXPECT_EQ(kernel_.node_at(kPages - 2), 3);

  // Small ranges are not worth waking anybody.
  lent = {};
  migrate_pages(at(1), 1000 * kPageSize, 0);
  EXPECT_EQ(lent.most, 0u);
}

TEST(KernelNodes, InventedMachinesGoRoundThoseThatThereAre) {
  ASSERT_TRUE(use_machine(four_nodes(false)));
  for (NodeIndex node = 0; node < 4; ++node) {
    const int kernel = kernel_node_of(node);
    ASSERT_GE(kernel, 0);
    const NodeIndex back = node_of_kernel(kernel);
    EXPECT_LE(back, node);
    EXPECT_EQ(kernel_node_of(back), kernel);
  }
  EXPECT_EQ(kernel_node_of(4), -1);
  EXPECT_EQ(kernel_node_of(kNoNode), -1);
  EXPECT_EQ(node_of_kernel(-ENOENT), kNoNode);
}

// --- the real kernel

TEST_F(RealMigration, PagesThatAreThereAndPagesThatAreNot) {
  char* memory = map(kPages);
  std::vector<NodeIndex> nodes(kPages);
  ASSERT_TRUE(locate_pages(memory, kPages * kPageSize, nodes.data()));
  EXPECT_TRUE(std::ranges::all_of(nodes, [](NodeIndex node) { return node == kNoNode; }));
  for (size_t i = 0; i < kPages; i += 2) memory[i * kPageSize] = static_cast<char>(i);
  ASSERT_TRUE(locate_pages(memory, kPages * kPageSize, nodes.data()));
  const NodeIndex home = nodes[0];
  ASSERT_NE(home, kNoNode);
  const Moved moved = migrate_pages(memory, kPages * kPageSize, home);
  EXPECT_EQ(moved.absent, kPages / 2);
  EXPECT_EQ(moved.moved + moved.already, kPages / 2);
  for (size_t i = 0; i < kPages; i += 2) ASSERT_EQ(memory[i * kPageSize], static_cast<char>(i));
  // Nothing there; but nobody else's memory may come to lie there either.
  ASSERT_EQ(mmap(memory, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            memory);
  EXPECT_EQ(migrate_pages(memory, kPages * kPageSize, home).absent, kPages);
}

TEST_F(RealMigration, ToEveryNodeAndBack) {
  if (machine_->n_nodes < 2) GTEST_SKIP() << "one node";
  char* memory = map(kPages);
  write(memory, kPages);
  move_to(memory, kPages, 0);
  for (NodeIndex node = 1; node < machine_->n_nodes; ++node) {
    EXPECT_EQ(migrate_pages(memory, kPages * kPageSize, node), (Moved{.moved = kPages}));
    EXPECT_EQ(pages_on(memory, kPages, node), kPages);
  }
  std::vector<NodeIndex> nodes(kPages);
  for (size_t i = 0; i < kPages; ++i)
    nodes[i] = static_cast<NodeIndex>(i / 100 % machine_->n_nodes);
  const Moved moved =
      migrate_pages({.begin = memory, .bytes = kPages * kPageSize, .nodes = nodes.data()});
  EXPECT_EQ(moved.moved + moved.already, kPages);
  EXPECT_EQ(pages_on(memory, kPages, 0),
            static_cast<size_t>(std::ranges::count(nodes, NodeIndex{0})));
  EXPECT_TRUE(is_written(memory, kPages));
}

TEST_F(RealMigration, PinnedPagesStay) {
  if (machine_->n_nodes < 2) GTEST_SKIP() << "one node";
  constexpr size_t kCount = 64;
  char* memory = map(kCount);
  write(memory, kCount);
  move_to(memory, kCount, 0);
  // A pipe holds the pages of vmsplice(2) until somebody reads them.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const iovec pinned{memory + 10 * kPageSize, 4 * kPageSize};
  ASSERT_EQ(vmsplice(ends[1], &pinned, 1, 0), static_cast<ssize_t>(pinned.iov_len));
  std::vector<PageOutcome> outcomes(kCount);
  const Moved moved = migrate_pages(
      {.begin = memory, .bytes = kCount * kPageSize, .node = 1, .outcomes = outcomes.data()});
  EXPECT_EQ(moved, (Moved{.moved = kCount - 4, .refused = 4}));
  EXPECT_EQ(outcomes[10], PageOutcome::kRefused);
  EXPECT_EQ(outcomes[14], PageOutcome::kMoved);
  EXPECT_EQ(pages_on(memory, kCount, 0), 4u);
  EXPECT_TRUE(is_written(memory, kCount));
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(migrate_pages(memory, kCount * kPageSize, 1),
            (Moved{.moved = 4, .already = kCount - 4}));
}

TEST_F(RealMigration, PagesOfTwoProcessesStay) {
  if (machine_->n_nodes < 2) GTEST_SKIP() << "one node";
  constexpr size_t kCount = 64;
  char* memory = map(kCount);
  write(memory, kCount);
  move_to(memory, kCount, 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char nothing;
    close(ends[1]);
    _exit(read(ends[0], &nothing, 1) == 0 ? 0 : 1);  // until the parent closes its end
  }
  for (size_t i = 0; i < kCount / 2; ++i) memory[i * kPageSize + 8] = 1;  // the parent's own now
  const Moved moved = migrate_pages(memory, kCount * kPageSize, 1);
  EXPECT_EQ(moved.refused, kCount / 2);
  EXPECT_EQ(moved.moved + moved.already, kCount / 2);
  EXPECT_EQ(pages_on(memory + kCount / 2 * kPageSize, kCount / 2, 0), kCount / 2);
  close(ends[0]);
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(migrate_pages(memory, kCount * kPageSize, 1).moved, kCount / 2);
}

TEST_F(RealMigration, AFullNodeTakesWhatItCan) {
  // Only where a node is small enough: BOSK_TEST_FULL_NODE=number of the node, so many MiB in all.
  const char* text = getenv("BOSK_TEST_FULL_NODE");
  if (text == nullptr) GTEST_SKIP() << "no node that may be filled";
  const auto node = static_cast<NodeIndex>(atoi(text));
  ASSERT_LT(node, machine_->n_nodes);
  const size_t count = machine_->node_array[node].bytes / kPageSize + 1000;
  char* memory = map(count);
  write(memory, count);
  const Moved moved = migrate_pages(memory, count * kPageSize, node);
  EXPECT_GT(moved.moved, 0u);
  EXPECT_GE(moved.no_memory, 1000u);
  EXPECT_EQ(moved.pages(), count);
  EXPECT_EQ(moved.refused, 0u);
  EXPECT_EQ(pages_on(memory, count, node), moved.moved + moved.already);
  EXPECT_TRUE(is_written(memory, count));
}

}  // namespace
}  // namespace bosk::memory
