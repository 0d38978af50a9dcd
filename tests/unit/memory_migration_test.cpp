// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Migration on a kernel that the test makes up (full nodes, pinned, shared, absent, huge pages that can be split or not,
// forbidden nodes), and on the real one.
#include "memory/migration.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "invented_machine.h"
#include "memory/huge_pages.h"
#include "memory/nodes.h"
#include "memory/pagemap.h"
#include "topology/source.h"

namespace bosk::memory {
namespace {

constexpr uintptr_t kPageSize = 4096;
constexpr uintptr_t kBase = uintptr_t{1} << 32;
constexpr uintptr_t kHuge = uintptr_t{2} << 20;

/// move_pages as do_pages_move() of Linux 6.1 to 6.18 does it: pages are queued until one has a status of its own or
/// another target; the queue is then tried as a whole, and the first that fails ends the call.
class FakeKernel {
 public:
  struct Page {
    int node = -1;  // -1: absent
    bool pinned = false;
    bool shared = false;
    int busy = 0;        // so many times
    uintptr_t huge = 0;  // key of the huge page that it is a part of
    bool locked = false;
    bool held = false;  // advice does nothing, and says nothing: the page is shared with a child
  };

  std::map<uintptr_t, Page> pages;
  std::map<int, long> room;  // free pages; no entry: plenty
  std::set<int> forbidden;
  long moves = 0;           // calls that moved
  long queries = 0;         // calls that asked
  unsigned long asked = 0;  // pages that they asked about
  unsigned long sent = 0;   // pages that were to move
  std::set<int>
      in_pieces;      // nodes without room for a whole huge page: it is taken apart on the way
  bool scans = true;  // as Linux since 6.7
  long splits = 0;
  std::set<uintptr_t> small_for_good;  // blocks with MADV_NOHUGEPAGE
  std::mutex lock;

  long advise(uintptr_t at, size_t bytes, int advice) {
    const std::lock_guard guard(lock);
    if (advice == MADV_NOHUGEPAGE) {
      EXPECT_EQ(bytes, kHuge);
      EXPECT_EQ(at % kHuge, 0u);
      small_for_good.insert(at);
      return 0;
    }
    EXPECT_EQ(advice, MADV_COLD);
    EXPECT_EQ(bytes, kPageSize);
    const auto found = pages.find(at);
    if (found == pages.end()) return -ENOMEM;
    if (found->second.locked) return -EINVAL;
    const uintptr_t huge = found->second.huge;
    if (huge == 0 || found->second.held) return 0;
    ++splits;
    for (auto& [key, page] : pages)
      if (page.huge == huge) page.huge = 0;
    return 0;
  }
  int is_huge(uintptr_t block) {
    const std::lock_guard guard(lock);
    if (!scans) return -1;
    const auto found = pages.find(block);
    return found != pages.end() && found->second.huge != 0 ? 1 : 0;
  }

  long call(unsigned long count, void** address, const int* nodes, int* status) {
    const std::lock_guard guard(lock);
    if (nodes == nullptr) {
      ++queries;
      asked += count;
      for (unsigned long i = 0; i < count; ++i) status[i] = where(address[i]);
      return 0;
    }
    ++moves;
    sent += count;
    std::vector<uintptr_t> queue;
    std::set<uintptr_t> isolated;  // huge pages
    unsigned long start = 0;
    int node = -1;
    const auto flush = [&](unsigned long end) -> long {
      if (queue.empty()) return 0;
      long failed = 0;
      bool full = false;
      for (const uintptr_t page : queue) {
        if (pages[page].pinned) {
          ++failed;
        } else if (room.contains(node) && room[node] == 0) {
          full = true;
          break;
        } else {
          put(page, node);
        }
      }
      queue.clear();
      isolated.clear();
      if (full) return -ENOMEM;
      if (failed != 0) return failed + static_cast<long>(count - end);
      for (unsigned long i = start; i < end; ++i) status[i] = node;
      return 0;
    };
    for (unsigned long i = 0; i < count; ++i) {
      if (forbidden.contains(nodes[i])) {
        const long answer = flush(i);
        return answer < 0 ? answer : -EACCES;
      }
      if (node == -1) {
        node = nodes[i];
        start = i;
      } else if (node != nodes[i]) {
        if (const long answer = flush(i); answer != 0) return answer;
        start = i;
        node = nodes[i];
      }
      const auto key = reinterpret_cast<uintptr_t>(address[i]);
      const auto found = pages.find(key);
      int code;
      if (found == pages.end() || found->second.node < 0) {
        code = -ENOENT;
      } else if (found->second.node == node) {
        code = node;
      } else if (found->second.shared) {
        code = -EACCES;
      } else if (found->second.busy > 0) {
        --found->second.busy;
        code = -EBUSY;
      } else if (found->second.huge != 0 && !isolated.insert(found->second.huge).second) {
        code = -EBUSY;
      } else {
        queue.push_back(key);
        continue;
      }
      status[i] = code;
      if (const long answer = flush(i); answer != 0) return answer;
      node = -1;
    }
    return flush(count);
  }

  int node_at(uintptr_t index) { return pages[kBase + index * kPageSize].node; }

 private:
  int where(void* address) {
    const auto found = pages.find(reinterpret_cast<uintptr_t>(address));
    return found == pages.end() || found->second.node < 0 ? -ENOENT : found->second.node;
  }
  void put(uintptr_t page, int node) {
    const uintptr_t huge = pages[page].huge;
    if (huge == 0) return put_one(pages[page], node);
    const bool apart = in_pieces.contains(node);
    for (auto& [key, other] : pages)
      if (other.huge == huge) {
        if (apart) other.huge = 0;
        if (!apart || !other.pinned) put_one(other, node);
      }
  }
  void put_one(Page& page, int node) {
    page.node = node;
    if (room.contains(node)) --room[node];
  }
};

FakeKernel* fake = nullptr;

/// Four nodes, the kernel's (the fake one's, that is) or invented ones. For good: the table keeps what was once in use.
const topology::Machine& four_nodes(bool of_the_kernel) {
  const auto make = [](bool this_system) {
    topology::Machine* machine = test::symmetric(4, 1, 2, 1).release();
    machine->this_system = this_system;
    return machine;
  };
  static const topology::Machine* const the_kernels = make(true);
  static const topology::Machine* const invented = make(false);
  return of_the_kernel ? *the_kernels : *invented;
}

class Migrations : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(use_machine(four_nodes(true)));
    fake = &kernel_;
    set_move_pages([](unsigned long count, void** pages, const int* nodes, int* status) {
      return fake->call(count, pages, nodes, status);
    });
    static const HugePageCalls calls{
        [](uintptr_t at, size_t bytes, int advice) { return fake->advise(at, bytes, advice); },
        [](uintptr_t block) { return fake->is_huge(block); }};
    set_huge_page_calls(&calls);
  }
  void TearDown() override {
    set_move_pages(nullptr);
    set_huge_page_calls(nullptr);
    set_migration_crew(nullptr);
  }

  void fill(uintptr_t count, int node) {
    for (uintptr_t i = 0; i < count; ++i) page(i).node = node;
  }
  FakeKernel::Page& page(uintptr_t index) { return kernel_.pages[kBase + index * kPageSize]; }
  static void* at(uintptr_t index) { return reinterpret_cast<void*>(kBase + index * kPageSize); }

  FakeKernel kernel_;
};

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

// --- the real kernel. With several nodes in the lab: tests/lab/CMakeLists.txt.

class RealMigration : public testing::Test {
 protected:
  static constexpr size_t kPages = 40'000;  // several batches

  void SetUp() override {
    topology::Error error;
    static const topology::Machine* machine = topology::load_machine({}, &error);
    ASSERT_NE(machine, nullptr) << error.text;
    machine_ = machine;
    ASSERT_TRUE(use_machine(*machine));
    int status = 0;
    void* page = &status;
    if (syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &status, MPOL_MF_MOVE) != 0)
      GTEST_SKIP() << "this kernel does not let us move pages: " << strerror(errno);
  }
  void TearDown() override {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  char* map(size_t pages, bool huge = false) {
    bytes_ = pages * kPageSize + (huge ? kHuge : 0);
    void* made = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(made, MAP_FAILED);
    memory_ = static_cast<char*>(made);
    madvise(memory_, bytes_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (!huge) return memory_;
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory_) + kHuge - 1) & -kHuge);
  }
  /// No page of zeros: when Linux 6.12 splits a huge page, such ones are absent afterwards.
  static void write(char* memory, size_t pages) {
    for (size_t i = 1; i <= pages; ++i)
      for (size_t at = 0; at < kPageSize; at += 512)
        memcpy(memory + (i - 1) * kPageSize + at, &i, sizeof i);
  }
  static bool is_written(const char* memory, size_t pages) {
    for (size_t i = 1; i <= pages; ++i)
      for (size_t at = 0; at < kPageSize; at += 512)
        if (memcmp(memory + (i - 1) * kPageSize + at, &i, sizeof i) != 0) return false;
    return true;
  }
  /// By the kernel's own word: how many of the pages are on the node.
  size_t pages_on(const char* memory, size_t pages, NodeIndex node) {
    std::vector<void*> addresses(pages);
    std::vector<int> status(pages);
    for (size_t i = 0; i < pages; ++i) addresses[i] = const_cast<char*>(memory) + i * kPageSize;
    EXPECT_EQ(syscall(SYS_move_pages, 0, pages, addresses.data(), nullptr, status.data(), 0), 0);
    return static_cast<size_t>(
        std::ranges::count(status, static_cast<int>(machine_->node_array[node].os_index)));
  }
  void move_to(char* memory, size_t pages, NodeIndex node) {
    migrate_pages(memory, pages * kPageSize, node);
    ASSERT_EQ(pages_on(memory, pages, node), pages);
  }

  const topology::Machine* machine_ = nullptr;
  char* memory_ = nullptr;
  size_t bytes_ = 0;
};

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
