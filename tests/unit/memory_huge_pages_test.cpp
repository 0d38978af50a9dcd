// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Huge pages, whole ones and parts, on a kernel that the test makes up (they can be split or not, it tells what is one or does not),
// and on the real one.
#include "memory/huge_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "memory/migration.h"
#include "memory/pagemap.h"
#include "migration_support.h"

namespace bosk::memory {
namespace {

using testing::kBase;
using testing::kHuge;
using testing::kPageSize;
using testing::Migrations;
using testing::RealMigration;

/// Four huge pages from the first page on, all on node 0.
class PartsOfHugePages : public Migrations {
 protected:
  static constexpr uintptr_t kIn = kHuge / kPageSize;

  void SetUp() override {
    Migrations::SetUp();
    fill(4 * kIn, 0);
    for (uintptr_t i = 0; i < 4 * kIn; ++i) page(i).huge = 1 + i / kIn;
  }
  /// How many pages of [first, end) are on the node.
  uintptr_t on(int node, uintptr_t first = 0, uintptr_t end = 4 * kIn) {
    uintptr_t sum = 0;
    for (uintptr_t i = first; i < end; ++i) sum += kernel_.node_at(i) == node;
    return sum;
  }
  Moved move(uintptr_t first, uintptr_t count, NodeIndex node) {
    return migrate_pages(at(first), count * kPageSize, node);
  }
  static uintptr_t block(uintptr_t index) { return kBase + index * kHuge; }
};

TEST_F(PartsOfHugePages, AreSplitAtBothEnds) {
  EXPECT_EQ(move(100, 3 * kIn, 1), (Moved{.moved = 3 * kIn}));
  EXPECT_EQ(on(1), 3 * kIn);
  EXPECT_EQ(on(1, 100, 100 + 3 * kIn), 3 * kIn);
  EXPECT_EQ(kernel_.splits, 2);
  EXPECT_EQ(kernel_.small_for_good, (std::set{block(0), block(3)}));
  EXPECT_NE(page(kIn).huge, 0u) << "a whole one was split";
}

TEST_F(PartsOfHugePages, WholeOnesAreNot) {
  EXPECT_EQ(move(0, 4 * kIn, 1), (Moved{.moved = 4 * kIn}));
  EXPECT_EQ(move(kIn, kIn, 2), (Moved{.moved = kIn}));
  std::vector<NodeIndex> nodes(4 * kIn);
  for (uintptr_t i = 0; i < 4 * kIn; ++i) nodes[i] = static_cast<NodeIndex>(i / kIn);
  migrate_pages({.begin = at(0), .bytes = 4 * kHuge, .nodes = nodes.data()});
  EXPECT_EQ(on(3, 3 * kIn), kIn);
  EXPECT_EQ(kernel_.splits, 0);
  EXPECT_TRUE(kernel_.small_for_good.empty());
}

TEST_F(PartsOfHugePages, WholeOnesGoByTheirFirstPage) {
  EXPECT_EQ(move(0, 4 * kIn, 1), (Moved{.moved = 4 * kIn}));
  EXPECT_EQ(kernel_.asked, 4u);
  EXPECT_EQ(kernel_.sent, 4u);
  // Small pages beside them go one by one, and so does all where the kernel does not say what is huge.
  for (uintptr_t i = 2 * kIn; i < 3 * kIn; ++i) page(i).huge = 0;
  EXPECT_EQ(move(0, 4 * kIn, 2), (Moved{.moved = 4 * kIn}));
  EXPECT_EQ(kernel_.sent, 4u + 3 + kIn);
  kernel_.scans = false;
  EXPECT_EQ(move(0, 4 * kIn, 3), (Moved{.moved = 4 * kIn}));
  EXPECT_EQ(on(3), 4 * kIn);
  // Some are there, some are not.
  kernel_.scans = true;
  for (uintptr_t i = 0; i < kIn; ++i) page(i).node = 0;
  for (uintptr_t i = kIn; i < 2 * kIn; ++i) page(i).node = -1;
  EXPECT_EQ(move(0, 4 * kIn, 0), (Moved{.moved = 2 * kIn, .already = kIn, .absent = kIn}));
}

/// Kernels before 6.7: the first page of a block is sent ahead, and the others come along or do not.
class WholeHugePagesUnknown : public PartsOfHugePages {
 protected:
  void SetUp() override {
    PartsOfHugePages::SetUp();
    kernel_.scans = false;
    // One that comes along, after those that go by without a page sent ahead: tests before may have moved small ones.
    constexpr uintptr_t kFar = 100 * kIn;
    for (NodeIndex node = 1; node < 20; ++node) {
      for (uintptr_t i = kFar; i < kFar + kIn; ++i) page(i) = {.node = 0, .huge = 1000};
      move(kFar, kIn, 1);
    }
    kernel_.asked = kernel_.sent = 0;
  }
};

TEST_F(WholeHugePagesUnknown, GoByTheirFirstPage) {
  EXPECT_EQ(move(0, 4 * kIn, 1), (Moved{.moved = 4 * kIn}));
  EXPECT_EQ(kernel_.sent, 4u);
  EXPECT_EQ(kernel_.asked, 4u * 6);
  EXPECT_EQ(on(1), 4 * kIn);
  std::vector<NodeIndex> nodes(4 * kIn);
  for (uintptr_t i = 0; i < 4 * kIn; ++i)
    nodes[i] = i < kIn ? 3 : i < 3 * kIn ? 2 : i < 3 * kIn + 5 ? 1 : 0;
  std::vector<PageOutcome> outcomes(4 * kIn);
  kernel_.sent = 0;
  EXPECT_EQ(
      migrate_pages(
          {.begin = at(0), .bytes = 4 * kHuge, .nodes = nodes.data(), .outcomes = outcomes.data()}),
      (Moved{.moved = 4 * kIn - 5, .already = 5}));
  EXPECT_EQ(kernel_.sent, 3u + kIn - 5);
  for (uintptr_t i = 0; i < 4 * kIn; ++i) {
    ASSERT_EQ(kernel_.node_at(i), int(nodes[i])) << i;
    ASSERT_EQ(outcomes[i],
              i < 3 * kIn || i >= 3 * kIn + 5 ? PageOutcome::kMoved : PageOutcome::kAlready)
        << i;
  }
}

TEST_F(WholeHugePagesUnknown, SmallPagesAmongThemGoOneByOne) {
  for (uintptr_t i = kIn; i < 2 * kIn; ++i) page(i).huge = 0;
  page(kIn).pinned = true;       // of those that are sent ahead,
  page(kIn + 7).pinned = true;   // and of those that are not
  page(2 * kIn).busy = 1;        // tried again like any other
  page(3 * kIn + 511).node = 2;  // small ones that are not together
  for (uintptr_t i = 3 * kIn; i < 4 * kIn; ++i) page(i).huge = 0;
  std::vector<PageOutcome> outcomes(4 * kIn);
  EXPECT_EQ(
      migrate_pages({.begin = at(0), .bytes = 4 * kHuge, .node = 1, .outcomes = outcomes.data()}),
      (Moved{.moved = 4 * kIn - 2, .refused = 2}));
  EXPECT_EQ(on(1), 4 * kIn - 2);
  for (uintptr_t i = 0; i < 4 * kIn; ++i)
    ASSERT_EQ(outcomes[i], i == kIn || i == kIn + 7 ? PageOutcome::kRefused : PageOutcome::kMoved)
        << i;
}

TEST_F(WholeHugePagesUnknown, AreNotLookedForWhereAllWasSmallLately) {
  for (uintptr_t i = 0; i < 4 * kIn; ++i) page(i).huge = 0;
  int calls = 0;
  int ahead = 0;
  for (int i = 0; i < 30; ++i) {
    const long before = kernel_.moves;
    EXPECT_EQ(move(0, 4 * kIn, 1 + i % 2), (Moved{.moved = 4 * kIn}));
    ++calls;
    ahead += kernel_.moves - before > 1;
  }
  EXPECT_EQ(on(2), 4 * kIn);
  EXPECT_EQ(ahead, 4) << "of " << calls << ": the first, and every ninth after it";
  // Nothing there, or there already: nothing is sent.
  kernel_.sent = 0;
  EXPECT_EQ(move(0, 4 * kIn, 2), (Moved{.already = 4 * kIn}));
  EXPECT_EQ(kernel_.sent, 0u);
}

TEST_F(PartsOfHugePages, WholeOnesThatAreTakenApartOnTheWayAreLookedAtAgain) {
  kernel_.in_pieces = {2};
  page(kIn + 7).pinned = true;
  page(kIn + 300).pinned = true;
  std::vector<PageOutcome> outcomes(4 * kIn);
  EXPECT_EQ(
      migrate_pages({.begin = at(0), .bytes = 4 * kHuge, .node = 2, .outcomes = outcomes.data()}),
      (Moved{.moved = 4 * kIn - 2, .refused = 2}));
  EXPECT_EQ(on(2), 4 * kIn - 2);
  for (uintptr_t i = 0; i < 4 * kIn; ++i)
    ASSERT_EQ(outcomes[i],
              i == kIn + 7 || i == kIn + 300 ? PageOutcome::kRefused : PageOutcome::kMoved)
        << i;
}

TEST_F(PartsOfHugePages, WholeOnesThatAreBusyGoLater) {
  page(kIn).busy = 2;
  page(2 * kIn).busy = 1000;
  EXPECT_EQ(move(0, 4 * kIn, 1), (Moved{.moved = 3 * kIn, .refused = kIn}));
  EXPECT_EQ(on(0), kIn);
  kernel_.room[3] = 0;
  EXPECT_EQ(move(3 * kIn, kIn, 3), (Moved{.no_memory = kIn}));
}

TEST_F(PartsOfHugePages, AreLeftWholeWhereTheyAreThereAlready) {
  EXPECT_EQ(move(100, 10, 0), (Moved{.already = 10}));
  EXPECT_EQ(move(100, kIn, 0), (Moved{.already = kIn}));
  EXPECT_EQ(kernel_.splits, 0);
}

TEST_F(PartsOfHugePages, GoToNodesOfTheirOwn) {
  for (const bool scans : {true, false}) {
    SetUp();
    kernel_.scans = scans;
    kernel_.splits = 0;
    kernel_.small_for_good.clear();
    std::vector<NodeIndex> nodes(2 * kIn);
    for (uintptr_t i = 0; i < 2 * kIn; ++i) nodes[i] = static_cast<NodeIndex>(i / (kIn / 2) % 4);
    EXPECT_EQ(migrate_pages({.begin = at(0), .bytes = 2 * kHuge, .nodes = nodes.data()}),
              (Moved{.moved = 2 * kIn - kIn / 2, .already = kIn / 2}));
    for (uintptr_t i = 0; i < 2 * kIn; ++i) ASSERT_EQ(kernel_.node_at(i), int(nodes[i])) << i;
    EXPECT_EQ(on(0, 2 * kIn), 2 * kIn);
    EXPECT_EQ(kernel_.splits, 2);
    EXPECT_EQ(kernel_.small_for_good, (std::set{block(0), block(1)}));
  }
}

TEST_F(PartsOfHugePages, ThatAreLockedStayAndSoDoTheirNeighbours) {
  for (const bool scans : {true, false}) {
    kernel_.scans = scans;
    for (uintptr_t i = 0; i < kIn; ++i) page(i).locked = true;
    std::vector<PageOutcome> outcomes(kIn + 10);
    EXPECT_EQ(migrate_pages({.begin = at(kIn - 10),
                             .bytes = (kIn + 10) * kPageSize,
                             .node = 2,
                             .outcomes = outcomes.data()}),
              (Moved{.moved = kIn, .unsplit = 10}));
    EXPECT_EQ(outcomes[9], PageOutcome::kUnsplit);
    EXPECT_EQ(outcomes[10], PageOutcome::kMoved);
    EXPECT_EQ(on(0, 0, kIn), kIn);
    // As a whole it goes, locked or not.
    EXPECT_EQ(move(0, kIn, 1), (Moved{.moved = kIn}));
    EXPECT_EQ(move(0, 2 * kIn, 0), (Moved{.moved = 2 * kIn}));
  }
  EXPECT_EQ(kernel_.splits, 0);
  EXPECT_TRUE(kernel_.small_for_good.empty());
}

TEST_F(PartsOfHugePages, AreSplitFromBesideWhereOnlyTheyAreLocked) {
  for (uintptr_t i = 100; i < 110; ++i) page(i).locked = true;
  // The scan does not say so: such a mapping has been split, and only that.
  kernel_.scans = false;
  EXPECT_EQ(move(100, 10, 3), (Moved{.moved = 10}));
  EXPECT_EQ(on(3), 10u);
  EXPECT_EQ(kernel_.splits, 1);
}

TEST_F(PartsOfHugePages, ThatAreSharedWithAChildStay) {
  for (uintptr_t i = 0; i < kIn; ++i) page(i).held = true;
  EXPECT_EQ(move(0, 10, 1), (Moved{.unsplit = 10}));
  EXPECT_EQ(on(0, 0, kIn), kIn);
}

TEST_F(PartsOfHugePages, SmallPagesThatAreLockedGo) {
  for (const bool scans : {true, false}) {
    kernel_.scans = scans;
    for (uintptr_t i = 0; i < kIn; ++i) {
      page(i).huge = 0;
      page(i).locked = true;
      page(i).node = 0;
    }
    EXPECT_EQ(move(5, 20, 1), (Moved{.moved = 20}));
    EXPECT_EQ(on(1), 20u);
  }
  EXPECT_TRUE(kernel_.small_for_good.empty());
}

/// Batches, and parts that a crew takes, are cut where huge pages end.
TEST_F(PartsOfHugePages, BatchesCutNone) {
  constexpr uintptr_t kPages = 40 * kIn;
  fill(kPages, 0);
  for (uintptr_t i = 0; i < kPages; ++i) page(i).huge = 1 + i / kIn;
  EXPECT_EQ(move(7, kPages - 7, 1), (Moved{.moved = kPages - 7}));
  EXPECT_EQ(kernel_.splits, 1);
  EXPECT_EQ(on(0, 0, 7), 7u);
  const Crew crew{[](void*, NodeIndex, uint32_t, void (*work)(void*), void* context) {
                    std::thread other(work, context);
                    work(context);
                    other.join();
                  },
                  nullptr};
  set_migration_crew(&crew);
  EXPECT_EQ(move(kIn + 9, kPages - kIn - 18, 3), (Moved{.moved = kPages - kIn - 18}));
  EXPECT_EQ(on(3, 0, kPages), kPages - kIn - 18);
  EXPECT_EQ(kernel_.splits, 3);
}

// --- the real kernel

/// Maps huge pages, each of one node, and skips where the kernel has none to give.
class RealHugePages : public RealMigration {
 protected:
  static constexpr size_t kIn = kHuge / kPageSize;

  char* map_huge(size_t count, NodeIndex node) {
    char* memory = map(count * kIn, true);
    write(memory, count * kIn);
    migrate_pages(memory, count * kHuge, node);
    EXPECT_EQ(pages_on(memory, count * kIn, node), count * kIn);
    return memory;
  }
  /// As every kernel says: huge pages in mappings that begin at `memory` or behind, in the `count` blocks of 2 MiB.
  static size_t huge_pages(const char* memory, size_t count) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    std::ifstream maps("/proc/self/smaps");
    size_t kib = 0;
    bool within = false;
    for (std::string line; std::getline(maps, line);) {
      unsigned long from, to, found;
      if (sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2)
        within = from < begin + count * kHuge && to > begin;
      else if (within && sscanf(line.c_str(), "AnonHugePages: %lu", &found) == 1)
        kib += found;
    }
    return kib * 1024 / kHuge;
  }
  /// Blocks of 2 MiB that are mapped as one. -1: this kernel does not say.
  static int huge_blocks(const char* memory, size_t count) {
    int sum = 0;
    const int file = open_pagemap();
    for (size_t i = 0; i < count; ++i) {
      ScannedPages found;
      uintptr_t walked_to;
      const auto block = reinterpret_cast<uintptr_t>(memory) + i * kHuge;
      const long runs = scan_pagemap(file, block, block + kHuge, kPageHuge, &found, 1, &walked_to);
      if (runs < 0) sum = -1;
      if (sum >= 0) sum += static_cast<int>(runs);
    }
    close_pagemap(file);
    return sum;
  }
};

TEST_F(RealHugePages, MoveWhole) {
  if (machine_->n_nodes < 2) GTEST_SKIP() << "one node";
  constexpr size_t kCount = 2048;
  char* memory = map(kCount, true);
  write(memory, kCount);
  const size_t before = huge_pages(memory, 4);
  for (const NodeIndex node : {0u, 1u, 0u}) {
    const Moved moved = migrate_pages(memory, kCount * kPageSize, node);
    EXPECT_EQ(moved.moved + moved.already, kCount);
    EXPECT_EQ(pages_on(memory, kCount, node), kCount);
  }
  EXPECT_EQ(huge_pages(memory, 4), before);
  EXPECT_TRUE(is_written(memory, kCount));
}

// By number: the functions of ThreadSanitizer's runtime do nothing.
long lock_pages(void* at, size_t bytes) { return syscall(SYS_mlock, at, bytes); }
long unlock_pages(void* at, size_t bytes) { return syscall(SYS_munlock, at, bytes); }

/// One node is enough to see it: what is to go is not sent, so it is asked for directly.
TEST_F(RealHugePages, SplitOnlyTheirOwn) {
  char* memory = map_huge(3, 0);
  if (huge_blocks(memory, 3) != 3) GTEST_SKIP() << "no huge pages, or the kernel does not say";
  const auto block = reinterpret_cast<uintptr_t>(memory) + kHuge;
  const PartToGo part{block + kPageSize, block + 5 * kPageSize, block + 2 * kPageSize, 1, 0};
  HugePageMap map;
  EXPECT_TRUE(set_free(map, part));
  EXPECT_EQ(huge_blocks(memory, 3), 2);
  EXPECT_EQ(huge_blocks(memory + kHuge, 1), 0);
  EXPECT_TRUE(set_free(map, part));
  EXPECT_TRUE(is_written(memory, 3 * kIn));
  // Nobody puts it together again.
  EXPECT_NE(madvise(memory + kHuge, kHuge, 25 /* MADV_COLLAPSE */), 0);
}

TEST_F(RealHugePages, LockedAndSharedOnesAreLeftWhole) {
  char* memory = map_huge(2, 0);
  if (huge_blocks(memory, 2) != 2) GTEST_SKIP() << "no huge pages, or the kernel does not say";
  const auto block = reinterpret_cast<uintptr_t>(memory);
  const PartToGo part{block, block + 5 * kPageSize, block, 1, 0};
  HugePageMap map;
  if (lock_pages(memory, 2 * kHuge) == 0) {
    EXPECT_FALSE(set_free(map, part));
    EXPECT_EQ(huge_blocks(memory, 2), 2);
    ASSERT_EQ(unlock_pages(memory, 2 * kHuge), 0);
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char nothing;
    close(ends[1]);
    _exit(read(ends[0], &nothing, 1) == 0 ? 0 : 1);  // until the parent closes its end
  }
  EXPECT_FALSE(set_free(map, part));
  EXPECT_EQ(huge_blocks(memory, 2), 2);
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(set_free(map, part));
  EXPECT_EQ(huge_blocks(memory, 2), 1);
  EXPECT_TRUE(is_written(memory, 2 * kIn));
}

TEST_F(RealHugePages, PartsGoWithoutTheirNeighbours) {
  if (machine_->n_nodes < 2) GTEST_SKIP() << "one node";
  char* memory = map_huge(4, 0);
  // Four stripes of 1 MiB each, on nodes in turn.
  std::vector<NodeIndex> nodes(2 * kIn);
  for (size_t i = 0; i < nodes.size(); ++i)
    nodes[i] = static_cast<NodeIndex>(i / (kIn / 2) % machine_->n_nodes);
  const Moved moved = migrate_pages({.begin = memory, .bytes = 2 * kHuge, .nodes = nodes.data()});
  EXPECT_EQ(moved.moved + moved.already, 2 * kIn);
  for (size_t i = 0; i < nodes.size(); i += kIn / 2)
    EXPECT_EQ(pages_on(memory + i * kPageSize, kIn / 2, nodes[i]), kIn / 2) << i;
  EXPECT_EQ(pages_on(memory + 2 * kHuge, 2 * kIn, 0), 2 * kIn);
  // Of two halves the second, and then one page.
  EXPECT_EQ(migrate_pages(memory + 2 * kHuge + kHuge / 2, kHuge, 1), (Moved{.moved = kIn}));
  EXPECT_EQ(pages_on(memory + 2 * kHuge, 2 * kIn, 0), kIn);
  EXPECT_EQ(pages_on(memory + 2 * kHuge + kHuge / 2, kIn, 1), kIn);
  EXPECT_EQ(migrate_pages(memory + 2 * kHuge, 1, 1), (Moved{.moved = 1}));
  EXPECT_EQ(pages_on(memory + 2 * kHuge, 2 * kIn, 0), kIn - 1);
  EXPECT_TRUE(is_written(memory, 4 * kIn));
}

/// By mbind, mprotect or mlock on a part: to PAGEMAP_SCAN it is no huge page any more, and still it moves as one.
TEST_F(RealHugePages, PartsOfSplitMappingsGoWithoutTheirNeighbours) {
  if (machine_->n_nodes < 2) GTEST_SKIP() << "one node";
  char* memory = map_huge(3, 0);
  ASSERT_EQ(mprotect(memory + 4 * kPageSize, kPageSize, PROT_READ), 0);
  ASSERT_EQ(lock_pages(memory + kHuge + 4 * kPageSize, kPageSize), 0);
  ASSERT_EQ(lock_pages(memory + 2 * kHuge, kHuge), 0);
  ASSERT_EQ(mprotect(memory + 2 * kHuge + 4 * kPageSize, kPageSize, PROT_READ), 0);
  for (const size_t i : {size_t{0}, kIn}) {
    EXPECT_EQ(migrate_pages(memory + (i + 4) * kPageSize, 1, 1), (Moved{.moved = 1}));
    EXPECT_EQ(pages_on(memory + i * kPageSize, kIn, 0), kIn - 1);
  }
  // All of it is locked: the whole would come along. Unless the kernel has split it by itself.
  const Moved moved = migrate_pages(memory + 2 * kHuge + 4 * kPageSize, 1, 1);
  EXPECT_EQ(moved.moved + moved.unsplit, 1u);
  EXPECT_EQ(pages_on(memory + 2 * kHuge, kIn, 0), kIn - moved.moved);
  EXPECT_TRUE(is_written(memory, 3 * kIn));
}

TEST_F(RealHugePages, LockedAndSharedPartsStay) {
  if (machine_->n_nodes < 2) GTEST_SKIP() << "one node";
  char* memory = map_huge(2, 0);
  if (huge_pages(memory, 2) < 2) GTEST_SKIP() << "no huge pages";
  ASSERT_EQ(lock_pages(memory, 2 * kHuge), 0);
  // The half of the first and all of the second.
  EXPECT_EQ(migrate_pages(memory + kHuge / 2, kHuge / 2 + kHuge, 1),
            (Moved{.moved = kIn, .unsplit = kIn / 2}));
  EXPECT_EQ(pages_on(memory, kIn, 0), kIn);
  EXPECT_EQ(pages_on(memory + kHuge, kIn, 1), kIn);
  ASSERT_EQ(unlock_pages(memory, 2 * kHuge), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char nothing;
    close(ends[1]);
    _exit(read(ends[0], &nothing, 1) == 0 ? 0 : 1);
  }
  const Moved shared = migrate_pages(memory + kHuge / 2, kHuge / 2, 1);
  EXPECT_EQ(shared.unsplit + shared.refused, kIn / 2);
  EXPECT_EQ(pages_on(memory, kIn, 0), kIn);
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(migrate_pages(memory + kHuge / 2, kHuge / 2, 1), (Moved{.moved = kIn / 2}));
  EXPECT_EQ(pages_on(memory, kIn, 0), kIn / 2);
  EXPECT_TRUE(is_written(memory, 2 * kIn));
}

}  // namespace
}  // namespace bosk::memory
