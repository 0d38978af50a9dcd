// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs that map something over marked memory without cancelling first, against the rules: what is there then is theirs,
// the rest is brought or put back as ever, and when the marks are gone nothing is left of them.
#include <fcntl.h>
#include <unistd.h>

#include "next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::Area;
using testing::kPage;

class MappedAnew : public testing::NextTouch {
 protected:
  static void map_anew(const Area& area, size_t page, size_t pages) {
    ASSERT_EQ(mmap(area.at(page), pages * kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              area.at(page));
  }
  /// A file that userfaultfd does not take: this program.
  static void map_file(const Area& area, size_t page) {
    const int file = open("/proc/self/exe", O_RDONLY);
    ASSERT_GE(file, 0);
    ASSERT_EQ(mmap(area.at(page), kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0),
              area.at(page));
    close(file);
  }
  /// Touches discarded pages: whoever still watches them kills us.
  static void expect_zero_once_discarded(const Area& area, size_t page) {
    ASSERT_EQ(madvise(area.at(page), kPage, MADV_DONTNEED), 0);
    EXPECT_TRUE(area.page_is_zero(page)) << page;
  }
};

// The kernel stops at what is not watched: the pages behind it must become writable all the same, while others stay marked.
TEST_P(MappedAnew, OnNextWriteAndCancelled) {
  const Area area(16);
  area.fill(1);
  options_.on_write = true;
  expect_mark(area);
  map_anew(area, 5, 2);
  EXPECT_EQ(next_touch_cancel(area.at(0), 12 * kPage), kNextTouchOk);
  EXPECT_EQ(testing::marked_in(area), 4u);
  for (size_t page = 0; page < 16; ++page)
    if (page < 5 || page > 6) {
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    }
  for (size_t page = 0; page < 12; ++page) area.fill_page(page, 2);  // would not end
  EXPECT_EQ(testing::marked_in(area), 4u);
  area.fill(2);
  EXPECT_EQ(area.wrong(2), 0u);
}

TEST_P(MappedAnew, OnNextWriteAndWritten) {
  const Area area(32, 32);
  area.fill(1);
  options_.on_write = true;
  options_.window = 16;
  expect_mark(area);
  map_anew(area, 5, 2);
  area.fill_page(0, 2);
  for (size_t page = 1; page < 32; ++page)
    if (page < 5 || page > 6) {
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    }
  for (size_t page = 0; page < 16; ++page) area.fill_page(page, 2);
  EXPECT_EQ(testing::marked_in(area), 16u);
  area.fill(2);
  EXPECT_EQ(area.wrong(2), 0u);
  EXPECT_EQ(next_touch_cancel(area.at(0), area.bytes()), kNextTouchOk);
  EXPECT_EQ(area.wrong(2), 0u);
}

// By the rules: a part is cancelled and given back, and what comes there is none of ours, whatever is marked around it.
TEST_P(MappedAnew, AfterAPartWasCancelled) {
  const Area area(16);
  area.fill(1);
  options_.window = 1;
  expect_mark(area);
  ASSERT_EQ(next_touch_cancel(area.at(5), 3 * kPage), kNextTouchOk);
  map_anew(area, 5, 3);
  ASSERT_TRUE(area.page_is(0, 1));
  ASSERT_EQ(next_touch_mark(area.at(0), kPage, options_), kNextTouchOk);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "new", 4), 4);
  EXPECT_EQ(read(ends[0], area.at(6), 4), 4) << "a system call met a page that nobody has marked";
  EXPECT_STREQ(area.at(6), "new");
  close(ends[0]);
  close(ends[1]);
  for (size_t page = 0; page < 16; ++page)
    if (page < 5 || page > 7) {
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    }
}

TEST_P(MappedAnew, AFileAndCancelled) {
  const Area area(32);
  area.fill(1);
  expect_mark(area);
  map_file(area, 9);
  EXPECT_EQ(next_touch_cancel(area.at(0), area.bytes()), kNextTouchOk);
  for (size_t page = 0; page < 32; ++page)
    if (page != 9) {
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    }
  EXPECT_EQ(memcmp(area.at(9), "\177ELF", 4), 0);
  expect_zero_once_discarded(area, 3);
  expect_zero_once_discarded(area, 20);
}

TEST_P(MappedAnew, AFileAndTouched) {
  const Area area(32, 32);
  area.fill(1);
  options_.window = 8;
  expect_mark(area);
  map_file(area, 9);
  for (size_t page = 0; page < 32; ++page)
    if (page != 9) {
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    }
  EXPECT_EQ(memcmp(area.at(9), "\177ELF", 4), 0);
  EXPECT_EQ(next_touch_cancel(area.at(0), area.bytes()), kNextTouchOk);
  expect_zero_once_discarded(area, 3);
  expect_zero_once_discarded(area, 20);
}

TEST_P(MappedAnew, HolesAreNoObstacle) {
  const Area area(64);
  area.fill(1);
  expect_mark(area);
  ASSERT_EQ(munmap(area.at(0), 4 * kPage), 0);
  ASSERT_EQ(munmap(area.at(30), 4 * kPage), 0);
  ASSERT_EQ(munmap(area.at(60), 4 * kPage), 0);
  const uint64_t lost = next_touch_statistics().lost;
  EXPECT_EQ(next_touch_cancel(area.at(0), area.bytes()), kNextTouchOk);
  EXPECT_EQ(next_touch_statistics().lost, lost + 12);
  for (size_t page = 4; page < 60; ++page)
    if (page < 30 || page >= 34) {
      EXPECT_TRUE(area.page_is(page, 1)) << page;
    }
  expect_zero_once_discarded(area, 10);
  expect_zero_once_discarded(area, 50);
}

INSTANTIATE_TEST_SUITE_P(Backends, MappedAnew,
                         ::testing::Values(NextTouchBackend::kUffd, NextTouchBackend::kUffdThread,
                                           NextTouchBackend::kSigsegv),
                         testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
