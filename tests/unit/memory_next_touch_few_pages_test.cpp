// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Marks of a few pages, which go another way than those of many where the kernel can move pages.
#include <memory>
#include <vector>

#include "next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::Area;
using testing::kPage;
using testing::marked_in;

class FewPages : public testing::NextTouch {};

TEST_P(FewPages, ComeBackWholeTouchedMarkedAgainAndCancelled) {
  for (size_t pages = 1; pages <= 9; ++pages) {
    SCOPED_TRACE(pages);
    for (size_t first = 0; first < pages; ++first) {
      const Area area(pages);
      area.fill(1);
      expect_mark(area);
      ASSERT_TRUE(area.page_is(first, 1));
      EXPECT_EQ(marked_in(area), pages - 1);
      area.fill_page(first, 1);
      expect_mark(area);  // of which a part has been touched
      ASSERT_TRUE(area.page_is(pages - 1, 1));
      ASSERT_EQ(next_touch_cancel(area.at(0), first * kPage), kNextTouchOk);
      ASSERT_EQ(area.wrong(1), 0u);
      EXPECT_EQ(marked_in(area), 0u);
      area.fill(2);
      expect_mark(area);
      ASSERT_EQ(area.wrong(2), 0u);
    }
  }
}

TEST_P(FewPages, OfWhichSomeHaveNeverBeenTouched) {
  for (unsigned present = 0; present < 32; ++present) {
    SCOPED_TRACE(present);
    const Area area(5);
    for (size_t page = 0; page < 5; ++page)
      if ((present >> page & 1) != 0) area.fill_page(page, 1);
    expect_mark(area);
    area.fill_page(2, 2);
    for (size_t page = 0; page < 5; ++page) {
      if (page == 2)
        ASSERT_TRUE(area.page_is(page, 2));
      else if ((present >> page & 1) != 0)
        ASSERT_TRUE(area.page_is(page, 1)) << page;
      else
        ASSERT_TRUE(area.page_is_zero(page)) << page;
    }
  }
}

// Pages that a child has, too, cannot be moved one by one.
TEST_P(FewPages, ThatAChildShares) {
  const Area area(4);
  area.fill(1);
  int pipe_to_child[2];
  ASSERT_EQ(pipe(pipe_to_child), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(pipe_to_child[1]);
    char c;
    const bool told = read(pipe_to_child[0], &c, 1) == 0;
    _exit(told && area.wrong(1) == 0 ? 0 : 1);
  }
  close(pipe_to_child[0]);
  area.fill_page(1, 2);  // ours alone now; the others are not
  expect_mark(area);
  EXPECT_TRUE(area.page_is(1, 2));
  EXPECT_TRUE(area.page_is(0, 1));
  area.fill(3);
  expect_mark(area);
  EXPECT_EQ(area.wrong(3), 0u);
  close(pipe_to_child[1]);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(FewPages, AreFoundWholeInAChild) {
  const Area area(3);
  area.fill(1);
  expect_mark(area);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool good = area.wrong(1) == 0;
    area.fill(2);
    // It marks for itself.
    good = good && next_touch_mark(area.at(0), area.bytes(), options_) == kNextTouchOk &&
           marked_in(area) == 3 && area.wrong(2) == 0;
    _exit(good ? 0 : 1);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(area.wrong(1), 0u);
  expect_mark(area);
  EXPECT_EQ(area.wrong(1), 0u);
}

// More than there are slots; and twice, so that all of them are used again.
TEST_P(FewPages, EachMarkedAloneAreAsManyAsOneLikes) {
  const Area area(6000);
  area.fill(1);
  for (int turn = 0; turn < 2; ++turn) {
    for (size_t page = 0; page < area.pages(); page += 2)
      ASSERT_EQ(next_touch_mark(area.at(page), kPage, options_), kNextTouchOk) << page;
    ASSERT_EQ(marked_in(area), area.pages() / 2);
    ASSERT_EQ(area.wrong(1), 0u);
    ASSERT_EQ(marked_in(area), 0u);
  }
}

// A region that is cut: each part's data are where they were put.
TEST_P(FewPages, OfWhichAPartIsMarkedInAnotherWay) {
  NextTouchOptions on_write = options_;
  on_write.on_write = true;
  for (size_t from = 0; from < 6; ++from)
    for (size_t to = from + 1; to <= 6; ++to) {
      const Area area(6);
      area.fill(1);
      expect_mark(area);
      ASSERT_EQ(next_touch_mark(area.at(from), (to - from) * kPage, on_write), kNextTouchOk);
      ASSERT_EQ(marked_in(area), 6u);
      ASSERT_EQ(area.wrong(1), 0u);
      area.fill(2);
      ASSERT_EQ(area.wrong(2), 0u);
      ASSERT_EQ(marked_in(area), 0u);
    }
}

// What was set aside of a place that is gone is nobody's, and whoever gets the slot next must not find it.
TEST_P(FewPages, WhosePlaceIsGoneAreNotFoundByOthers) {
  for (int turn = 0; turn < 50; ++turn) {
    const Area area(3);
    area.fill(1);
    expect_mark(area);
    ASSERT_EQ(mmap(area.at(1), kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              area.at(1));
    ASSERT_TRUE(area.page_is_zero(1));
    area.fill_page(1, 3);
    ASSERT_TRUE(area.page_is(0, 1));
    ASSERT_TRUE(area.page_is(2, 1));
    ASSERT_EQ(next_touch_cancel(area.at(0), area.bytes()), kNextTouchOk);
    ASSERT_TRUE(area.page_is(1, 3));
    const Area other(3);
    other.fill(4);
    ASSERT_EQ(madvise(other.at(1), kPage, MADV_FREE), 0);
    expect_mark(other);
    ASSERT_TRUE(other.page_is(1, 4) || other.page_is_zero(1));
    ASSERT_TRUE(other.page_is(0, 4));
    ASSERT_TRUE(other.page_is(2, 4));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, FewPages, testing::kBackends, testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
