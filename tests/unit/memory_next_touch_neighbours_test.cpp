// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Marked memory beside a hole that fits what is marked next: where the kernel puts what is set aside then, it may join it
// to its neighbour, and what it forgets of the one it forgets of both.
#include <vector>

#include "next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::kPage;

class Neighbours : public testing::NextTouch {
 protected:
  /// Pages that nobody uses right below `end`, in front of all other places for so many: those are filled.
  void make_hole_below(char* end, size_t pages) {
    for (int tries = 0; tries < 1000; ++tries) {
      void* at = mmap(nullptr, pages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(at, MAP_FAILED);
      if (static_cast<char*>(at) + pages * kPage == end) {
        munmap(at, pages * kPage);
        return;
      }
      fillers_.push_back(at);
    }
    FAIL() << "the kernel does not come upon it";
  }
  void give_fillers_back(size_t pages) {
    for (void* at : fillers_) munmap(at, pages * kPage);
    fillers_.clear();
  }

 private:
  std::vector<void*> fillers_;
};

TEST_P(Neighbours, OfWhatNobodyHasTouchedYetLoseNothing) {
  for (const size_t pages : {size_t{1}, size_t{8}, size_t{200}, size_t{700}}) {
    SCOPED_TRACE(pages);
    const size_t below = pages + 1;
    // Alone: what has been touched beside it would be one mapping with it.
    char* fence = static_cast<char*>(
        mmap(nullptr, (pages + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(fence, MAP_FAILED);
    char* untouched = fence + kPage;
    ASSERT_EQ(mprotect(untouched, pages * kPage, PROT_READ | PROT_WRITE), 0);
    // The upper part of one mapping; what is below it goes once it has been marked.
    char* base = static_cast<char*>(mmap(nullptr, (below + 16) * kPage, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(base, MAP_FAILED);
    char* marked = base + below * kPage;
    for (size_t i = 0; i < 16; ++i) memset(marked + i * kPage, static_cast<int>('a' + i), kPage);
    ASSERT_EQ(next_touch_mark(marked, 16 * kPage, options_), kNextTouchOk);
    ASSERT_EQ(munmap(base, below * kPage), 0);
    make_hole_below(marked, pages);
    ASSERT_EQ(next_touch_mark(untouched, pages * kPage, options_), kNextTouchOk);
    give_fillers_back(pages);
    for (size_t i = 0; i < 16; ++i)
      ASSERT_EQ(marked[i * kPage + 5], static_cast<char>('a' + i)) << i;
    EXPECT_EQ(untouched[pages * kPage - 1], 0);
    next_touch_resolve_all();
    munmap(marked, 16 * kPage);
    munmap(fence, (pages + 2) * kPage);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Neighbours, testing::kBackends, testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
