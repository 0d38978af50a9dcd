// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every backend of next-touch must do, the same for all: no data are lost, marks are known, ended
// and made again, and everything else in the process works as before.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizers.h"
#include "memory/next_touch/kernel_nodes.h"
#include "memory/next_touch/reserve.h"
#include "next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::Area;
using testing::kPage;
using testing::NextTouch;

TEST_P(NextTouch, DataArriveAndMarksEnd) {
  const Area area(300);
  area.fill(1);
  expect_mark(area);
  NextTouchState state;
  ASSERT_EQ(next_touch_query(area.at(0), area.bytes(), &state), 0);
  EXPECT_EQ(state.backend, GetParam());
  EXPECT_EQ(state.pages, 300u);
  EXPECT_FALSE(state.on_write);
  EXPECT_EQ(area.wrong(1), 0u);
  EXPECT_EQ(testing::marked_in(area), 0u);
  area.fill(2);
  EXPECT_EQ(area.wrong(2), 0u);
}

TEST_P(NextTouch, OneTouchBringsOnePage) {
  const Area area(1200);  // more than two chunks, wherever they begin
  area.fill(1);
  expect_mark(area);
  for (const size_t page : {0, 7, 511, 512, 700, 1199}) {
    const size_t before = testing::marked_in(area);
    EXPECT_TRUE(area.page_is(page, 1));
    EXPECT_EQ(testing::marked_in(area), before - 1);
    EXPECT_TRUE(area.page_is(page, 1));
    EXPECT_EQ(testing::marked_in(area), before - 1);
  }
  EXPECT_EQ(area.wrong(1), 0u);
}

TEST_P(NextTouch, HalfTouchedAreasAreMarkedAgain) {
  const Area area(1100);
  area.fill(0);
  for (unsigned round = 1; round <= 4; ++round) {
    expect_mark(area);
    for (size_t page = round % 3; page < area.pages(); page += 1 + round)
      area.fill_page(page, round);
    for (size_t page = 0; page < area.pages(); page += 97) (void)area.page_is(page, 0);
    expect_mark(area);
    // Pages that were not written keep what they had.
    size_t wrong = 0;
    for (size_t page = 0; page < area.pages(); ++page) {
      unsigned expected = 0;
      for (unsigned r = 1; r <= round; ++r)
        if (page >= r % 3 && (page - r % 3) % (1 + r) == 0) expected = r;
      wrong += area.page_is(page, expected) ? 0 : 1;
    }
    ASSERT_EQ(wrong, 0u) << "round " << round;
  }
}

TEST_P(NextTouch, CancelledPartsStay) {
  const Area area(900);
  area.fill(3);
  expect_mark(area);
  EXPECT_EQ(next_touch_cancel(area.at(100), 200 * kPage), kNextTouchOk);
  EXPECT_EQ(testing::marked_in(area), 700u);
  EXPECT_EQ(next_touch_cancel(area.at(50), 20 * kPage + 17), kNextTouchOk);
  EXPECT_EQ(testing::marked_in(area), 680u);
  EXPECT_TRUE(area.page_is(150, 3));
  EXPECT_EQ(testing::marked_in(area), 680u);
  EXPECT_EQ(next_touch_cancel(area.at(0), area.bytes()), kNextTouchOk);
  EXPECT_EQ(testing::marked_in(area), 0u);
  EXPECT_EQ(area.wrong(3), 0u);
  expect_mark(area);
  EXPECT_EQ(area.wrong(3), 0u);
}

TEST_P(NextTouch, CancelledAndMarkedAgainInParts) {
  const Area area(640);
  area.fill(4);
  for (int round = 0; round < 6; ++round) {
    expect_mark(area);
    for (size_t page = 0; page < area.pages(); page += 128) {
      ASSERT_EQ(next_touch_cancel(area.at(page), 70 * kPage), kNextTouchOk);
      area.fill_page(page + 3, 5);
      area.fill_page(page + 3, 4);
    }
    ASSERT_EQ(testing::marked_in(area), 640u - 5 * 70u);
    // A part in the middle, over what is marked and what is not.
    ASSERT_EQ(next_touch_mark(area.at(40), 300 * kPage, options_), kNextTouchOk);
    ASSERT_EQ(area.wrong(4), 0u);
  }
}

TEST_P(NextTouch, OnNextWrite) {
  const Area area(64);
  area.fill(5);
  options_.on_write = true;
  expect_mark(area);
  EXPECT_EQ(area.wrong(5), 0u);
  EXPECT_EQ(testing::marked_in(area), 64u);
  area.fill_page(10, 6);
  EXPECT_EQ(testing::marked_in(area), 63u);
  EXPECT_TRUE(area.page_is(10, 6));
  EXPECT_EQ(next_touch_cancel(area.at(20), 10 * kPage), kNextTouchOk);
  area.fill_page(25, 6);
  EXPECT_EQ(testing::marked_in(area), 53u);
  // Another kind of mark over these.
  options_.on_write = false;
  expect_mark(area);
  for (size_t page = 0; page < 64; ++page)
    EXPECT_TRUE(area.page_is(page, page == 10 || page == 25 ? 6 : 5)) << page;
  EXPECT_EQ(testing::marked_in(area), 0u);
  options_.on_write = true;
  expect_mark(area);
  area.fill(7);
  EXPECT_EQ(testing::marked_in(area), 0u);
  EXPECT_EQ(area.wrong(7), 0u);
}

TEST_P(NextTouch, WindowsAndGranularity) {
  const Area area(1024, 512);
  area.fill(1);
  options_.window = 16;
  expect_mark(area);
  EXPECT_TRUE(area.page_is(100, 1));
  EXPECT_EQ(testing::marked_in(area), 1024u - 16);
  EXPECT_TRUE(area.page_is(510, 1));  // not over the end of its 2 MiB
  EXPECT_EQ(testing::marked_in(area), 1024u - 18);
  options_.granularity = 32;
  options_.window = 1;
  expect_mark(area);
  EXPECT_TRUE(area.page_is(70, 1));
  EXPECT_EQ(testing::marked_in(area), 1024u - 32);
  EXPECT_TRUE(area.page_is(64, 1));
  EXPECT_TRUE(area.page_is(95, 1));
  EXPECT_EQ(testing::marked_in(area), 1024u - 32);
  EXPECT_EQ(area.wrong(1), 0u);
}

TEST_P(NextTouch, TheWindowFollowsTheTouches) {
  const Area area(4096, 512);
  options_.window = 0;
  for (const bool downwards : {false, true}) {
    area.fill(8);
    expect_mark(area);
    const uint64_t before = next_touch_statistics().faults;
    for (size_t i = 0; i < area.pages(); ++i)
      ASSERT_TRUE(area.page_is(downwards ? area.pages() - 1 - i : i, 8));
    const uint64_t faults = next_touch_statistics().faults - before;
    // 1, 2, 4 … 256 in the first 2 MiB, then one or two for each.
    EXPECT_LE(faults, 30u) << (downwards ? "downwards" : "upwards");
  }
  // Pages here and there come alone.
  expect_mark(area);
  for (size_t i = 0; i < 40; ++i) ASSERT_TRUE(area.page_is(i * 2654435761u % 4096, 8));
  EXPECT_GE(testing::marked_in(area), 4096u - 60);
}

TEST_P(NextTouch, PagesThatWereNeverTouchedAreZero) {
  const Area area(256);
  for (size_t page = 0; page < 256; page += 2) area.fill_page(page, 1);
  expect_mark(area);
  for (size_t page = 0; page < 256; ++page) {
    if (page % 2 == 0)
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    else
      EXPECT_TRUE(area.page_is_zero(page)) << page;
  }
  EXPECT_EQ(testing::marked_in(area), 0u);
  // What the program discards while the area is marked elsewhere is zero, too.
  area.fill(2);
  expect_mark(area);
  EXPECT_TRUE(area.page_is(9, 2));
  ASSERT_EQ(madvise(area.at(9), kPage, MADV_DONTNEED), 0);
  EXPECT_TRUE(area.page_is_zero(9));
  area.fill_page(9, 2);
  EXPECT_EQ(area.wrong(2), 0u);
}

TEST_P(NextTouch, AForkFindsEverything) {
  const Area area(700);
  area.fill(1);
  for (int round = 0; round < 3; ++round) {
    expect_mark(area);
    area.fill_page(5, 1);
    area.fill_page(600, 1);
    const pid_t child = fork();
    if (child == 0) {
      bool good = area.wrong(1) == 0 && testing::marked_in(area) == 0;
      // The child goes on marking, with a userfaultfd of its own.
      area.fill(9);
      good = good && mark(area) == kNextTouchOk && testing::marked_in(area) == 700 &&
             area.wrong(9) == 0;
      _exit(good ? 0 : 1);
    }
    EXPECT_EQ(testing::marked_in(area), 0u);
    EXPECT_EQ(area.wrong(1), 0u);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    // Once shared with a child, and marked again.
    expect_mark(area);
    EXPECT_EQ(area.wrong(1), 0u);
  }
}

TEST_P(NextTouch, SharedWithAChildThatLives) {
  const Area area(100);
  area.fill(1);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char c;
    close(go[1]);
    const bool told = read(go[0], &c, 1) == 1;
    _exit(told && area.wrong(1) == 0 ? 0 : 1);
  }
  close(go[0]);
  expect_mark(area);
  area.fill_page(3, 2);
  EXPECT_TRUE(area.page_is(50, 1));
  EXPECT_EQ(next_touch_cancel(area.at(60), 20 * kPage), 0);
  area.fill(2);
  EXPECT_EQ(write(go[1], "x", 1), 1);
  close(go[1]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(area.wrong(2), 0u);
}

TEST_P(NextTouch, ReadOnlyMemory) {
  const Area area(32);
  area.fill(1);
  ASSERT_EQ(mprotect(area.at(0), area.bytes(), PROT_READ), 0);
  expect_mark(area);
  EXPECT_EQ(area.wrong(1), 0u);
  expect_mark(area);
  EXPECT_EQ(next_touch_cancel(area.at(0), area.bytes()), 0);
  ASSERT_EQ(mprotect(area.at(0), area.bytes(), PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(area.wrong(1), 0u);
}

TEST_P(NextTouch, HugePages) {
  const Area area(2048, 512);
  madvise(area.at(0), area.bytes(), MADV_HUGEPAGE);
  area.fill(1);
  expect_mark(area);
  area.fill_page(700, 2);
  expect_mark(area);
  EXPECT_TRUE(area.page_is(700, 2));
  EXPECT_EQ(next_touch_cancel(area.at(1024), 512 * kPage), 0);
  area.fill_page(700, 1);
  EXPECT_EQ(area.wrong(1), 0u);
}

TEST_P(NextTouch, SystemCalls) {
  const Area area(16);
  area.fill(1);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  options_.calls_must_work = calls_work();
  expect_mark(area);
  const ssize_t put = write(ends[1], area.at(2), kPage);
  if (calls_work()) {
    EXPECT_EQ(put, static_cast<ssize_t>(kPage));
    EXPECT_EQ(read(ends[0], area.at(3), kPage), static_cast<ssize_t>(kPage));
    EXPECT_EQ(memcmp(area.at(2), area.at(3), kPage), 0);
    area.fill_page(3, 1);
  } else {
    EXPECT_EQ(put, -1);
    EXPECT_EQ(errno, EFAULT);
    options_.calls_must_work = true;
    EXPECT_EQ(mark(area), kNextTouchUnsupported);
  }
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(area.wrong(1), 0u);
}

TEST_P(NextTouch, MappedAnewUnderAMark) {
  const Area area(64);
  area.fill(1);
  expect_mark(area);
  // Against the rules, but what is there now must not suffer.
  ASSERT_EQ(mmap(area.at(16), 16 * kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            area.at(16));
  for (size_t page = 16; page < 24; ++page) area.fill_page(page, 2);
  ASSERT_EQ(mark(area), kNextTouchOk);
  EXPECT_EQ(next_touch_cancel(area.at(0), 32 * kPage), 0);
  for (size_t page = 0; page < 64; ++page) {
    if (page < 16 || page >= 32)
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    else if (page < 24)
      EXPECT_TRUE(area.page_is(page, 2)) << page;
    else
      EXPECT_TRUE(area.page_is_zero(page)) << page;
  }
}

TEST_P(NextTouch, RefusesWhatCannotBe) {
  const Area area(16);
  area.fill(1);
  EXPECT_EQ(next_touch_mark(nullptr, kPage, options_), kNextTouchBadRange);
  EXPECT_EQ(next_touch_mark(area.at(0), SIZE_MAX - 5, options_), kNextTouchBadRange);
  EXPECT_EQ(next_touch_mark(area.at(1) + 1, kPage, options_), kNextTouchOk);  // no whole page
  EXPECT_EQ(testing::marked_in(area), 0u);
  auto* here = static_cast<char*>(__builtin_frame_address(0));
  EXPECT_EQ(next_touch_mark(here - 5 * kPage, 10 * kPage, options_), kNextTouchStack);

  // Not by mlock(), which ThreadSanitizer has do nothing.
  ASSERT_EQ(syscall(SYS_mlock, area.at(4), kPage), 0);
  EXPECT_EQ(mark(area), kNextTouchLocked);
  ASSERT_EQ(syscall(SYS_munlock, area.at(4), kPage), 0);
  ASSERT_EQ(munmap(area.at(8), kPage), 0);
  EXPECT_EQ(mark(area), kNextTouchNotMapped);
  EXPECT_EQ(testing::marked_in(area), 0u);

  void* shared =
      mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  EXPECT_EQ(next_touch_mark(shared, 4 * kPage, options_), kNextTouchShared);
  munmap(shared, 4 * kPage);
  void* closed = mmap(nullptr, 4 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(next_touch_mark(closed, 4 * kPage, options_), kNextTouchClosed);
  munmap(closed, 4 * kPage);
}

TEST_P(NextTouch, PrivateFileMappings) {
  const int file = memfd_create("next-touch", 0);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 8 * kPage), 0);
  auto* at =
      static_cast<char*>(mmap(nullptr, 8 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
  ASSERT_NE(at, MAP_FAILED);
  at[kPage] = 5;
  if (GetParam() == NextTouchBackend::kSigsegv) {
    EXPECT_EQ(next_touch_mark(at, 8 * kPage, options_), kNextTouchOk);
  } else {
    EXPECT_EQ(next_touch_mark(at, 8 * kPage, options_), kNextTouchFile);
    options_.backend = NextTouchBackend::kAuto;
    EXPECT_EQ(next_touch_mark(at, 8 * kPage, options_), kNextTouchOk);
    NextTouchState state;
    ASSERT_EQ(next_touch_query(at, 8 * kPage, &state), 0);
    EXPECT_EQ(state.backend, NextTouchBackend::kSigsegv);
  }
  EXPECT_EQ(at[kPage], 5);
  EXPECT_EQ(at[0], 0);
  EXPECT_EQ(next_touch_cancel(at, 8 * kPage), 0);
  munmap(at, 8 * kPage);
  close(file);
}

// ---- nodes, on an invented kernel

std::atomic<uint64_t> free_pages{1'000'000};

TEST_P(NextTouch, CountsWhereTheyCameFromAndWhereThereIsNoRoom) {
  if (calls_work()) GTEST_SKIP() << "the node of another thread is not invented";
  static const KernelNodesForTests invented = {
      4, [] { return 0u; }, [](uintptr_t page) { return static_cast<int>(page / kPage % 2) * 3; },
      [](uint32_t) { return free_pages.load(); }};
  const Area area(1000, 512);
  area.fill(1);
  for (const bool room : {true, false}) {
    free_pages = room ? 1'000'000 : 100;
    set_kernel_nodes_for_tests(&invented);
    expect_mark(area);
    const NextTouchStatistics before = next_touch_statistics();
    EXPECT_EQ(area.wrong(1), 0u);
    const NextTouchStatistics after = next_touch_statistics();
    EXPECT_EQ(after.faults - before.faults, 1000u);
    EXPECT_EQ(after.moved - before.moved, room ? 500u : 0u);
    EXPECT_EQ(after.no_room - before.no_room, room ? 0u : 500u);
    EXPECT_EQ(testing::marked_in(area), 0u);
    set_kernel_nodes_for_tests(nullptr);
  }
}

std::atomic<uint32_t> belongs_to{0};

TEST_P(NextTouch, GoesWhereTheToucherBelongsIfItIsPassingBy) {
  if (calls_work())
    GTEST_SKIP() << "nobody asks where a thread belongs that may be in a system call";
  // All is on 1, which is where the touchers are.
  static const KernelNodesForTests invented = {4, [] { return 1u; }, [](uintptr_t) { return 1; },
                                               [](uint32_t) { return uint64_t{1} << 30; }};
  const Area area(100, 512);
  area.fill(1);
  set_kernel_nodes_for_tests(&invented);
  next_touch_goes_by([] { return belongs_to.load(); });
  for (const uint32_t node : {3u, 1u, topology::kNone}) {
    belongs_to = node;
    expect_mark(area);
    const uint64_t before = next_touch_statistics().moved;
    EXPECT_EQ(area.wrong(1), 0u);
    EXPECT_EQ(next_touch_statistics().moved - before, node == 3 ? 100u : 0u) << node;
  }
  next_touch_goes_by(nullptr);
  set_kernel_nodes_for_tests(nullptr);
}

TEST_P(NextTouch, AMappingThatWasSplitWhileMarked) {
  static const KernelNodesForTests invented = {2, [] { return 0u; }, [](uintptr_t) { return 1; },
                                               [](uint32_t) { return uint64_t{1} << 30; }};
  const Area area(512, 512);
  area.fill(1);
  set_kernel_nodes_for_tests(&invented);
  options_.window = 512;
  expect_mark(area);
  const NextTouchStatistics before = next_touch_statistics();
  for (size_t page = 7; page < 512; page += 50)
    ASSERT_EQ(madvise(area.at(page), 3 * kPage, MADV_DONTDUMP), 0);
  EXPECT_EQ(area.wrong(1), 0u);
  EXPECT_EQ(next_touch_statistics().lost, before.lost);
  EXPECT_EQ(testing::marked_in(area), 0u);
  set_kernel_nodes_for_tests(nullptr);
}

std::atomic<uint32_t> here{0};

/// Brings all pages to node `to` from the other one, 64 with a touch; returns how many went into pages of the reserve.
uint64_t bring_all(const Area& area, NextTouchOptions options, uint32_t to) {
  here = to;
  options.window = 64;
  EXPECT_EQ(next_touch_mark(area.at(0), area.bytes(), options), kNextTouchOk);
  const NextTouchStatistics before = next_touch_statistics();
  EXPECT_EQ(area.wrong(1), 0u);
  const NextTouchStatistics after = next_touch_statistics();
  EXPECT_EQ(after.moved - before.moved, area.pages());
  return after.exchanged - before.exchanged;
}

TEST_P(NextTouch, NodesThatExchangeDataUseEachOthersPages) {
  if (calls_work()) GTEST_SKIP() << "the node of another thread is not invented";
  static const KernelNodesForTests invented = {2, [] { return here.load(); },
                                               [](uintptr_t) { return here == 0 ? 1 : 0; },
                                               [](uint32_t) { return uint64_t{1} << 30; }};
  set_kernel_nodes_for_tests(&invented);
  next_touch_resolve_all();
  const bool has_reserve = GetParam() == NextTouchBackend::kUffd;
  const Area area(512, 512), more(2048, 512), closed(512, 512);
  for (const Area* each : {&area, &more, &closed}) each->fill(1);
  EXPECT_EQ(bring_all(area, options_, 0), 0u);  // none on 0 yet
  EXPECT_EQ(pages_in_reserve(), has_reserve ? 512u : 0u);
  EXPECT_EQ(bring_all(area, options_, 1), has_reserve ? 512u : 0u);
  EXPECT_EQ(bring_all(more, options_, 0), has_reserve ? 512u : 0u);
  // What is kept is limited.
  EXPECT_LE(pages_in_reserve(), 2 * 1024u);
  // Executable memory does not mix with other pages; the data come all the same.
  ASSERT_EQ(mprotect(closed.at(0), closed.bytes(), PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  EXPECT_EQ(bring_all(closed, options_, 1), 0u);
  // A child has none of it, and its parent still has.
  const uint64_t kept = pages_in_reserve();
  const pid_t child = fork();
  if (child == 0) {
    if (pages_in_reserve() != 0 || bring_all(area, options_, 1) != 0 || area.wrong(1) != 0)
      _exit(1);
    _exit(HasFailure() ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pages_in_reserve(), kept);
  EXPECT_EQ(bring_all(more, options_, 1) > 0, has_reserve);
  for (const Area* each : {&area, &more, &closed}) EXPECT_EQ(each->wrong(1), 0u);
  next_touch_resolve_all();
  EXPECT_EQ(pages_in_reserve(), 0u);
  set_kernel_nodes_for_tests(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Backends, NextTouch, testing::kBackends, testing::name_of_backend);

// ---- not of a backend

TEST(NextTouchChoice, TheKernelsIsNeverTakenForThere) {
  // On a kernel without the patch; with it, marking says what is missing.
  NextTouchOptions options;
  options.backend = NextTouchBackend::kKernel;
  const Area area(1);
  EXPECT_EQ(next_touch_mark(area.at(0), kPage, options),
            kernel_next_touch_available() ? kNextTouchUnsupported : kNextTouchNoBackend);
}

TEST(NextTouchChoice, Words) {
  NextTouchBackend id = NextTouchBackend::kAuto;
  for (uint32_t i = 0; i < kNextTouchBackends; ++i) {
    ASSERT_TRUE(
        next_touch_parse_backend(next_touch_backend_name(static_cast<NextTouchBackend>(i)), &id));
    EXPECT_EQ(static_cast<uint32_t>(id), i);
  }
  EXPECT_FALSE(next_touch_parse_backend("", &id));
  EXPECT_FALSE(next_touch_parse_backend("uffd ", &id));
  for (int error = kNextTouchUnsupported; error <= 0; ++error)
    EXPECT_STRNE(next_touch_error_text(error), next_touch_error_text(1));
}

TEST(NextTouchChoice, Unprivileged) {
  // As somebody else, all of the above that needs no rights: uffd, user faults only.
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(1);
    NextTouchOptions options;
    const Area area(500);
    for (const NextTouchBackend id :
         {NextTouchBackend::kAuto, NextTouchBackend::kUffd, NextTouchBackend::kSigsegv}) {
      options.backend = id;
      if (id == NextTouchBackend::kUffd && !next_touch_available(id)) continue;
      area.fill(1);
      for (int round = 0; round < 2; ++round)
        if (next_touch_mark(area.at(0), area.bytes(), options) != 0 ||
            testing::marked_in(area) != 500 || !area.page_is(77, 1) ||
            next_touch_cancel(area.at(100), 50 * kPage) != 0)
          _exit(2);
      if (area.wrong(1) != 0) _exit(3);
    }
    // System calls need rights, or say so.
    options.backend = NextTouchBackend::kAuto;
    options.calls_must_work = true;
    const int error = next_touch_mark(area.at(0), area.bytes(), options);
    if (error == 0 ? area.wrong(1) != 0 : error != kNextTouchNoBackend) _exit(4);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace bosk::memory
