// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs of pages that are there, against a plain list.
#include "memory/present_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>
#include <vector>

namespace bosk::memory {
namespace {

constexpr size_t kPage = 4096;

class Reserved {
 public:
  explicit Reserved(size_t pages) : bytes_(pages * kPage) {
    at_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (at_ == MAP_FAILED) abort();
    // Huge ones would be there between those that are touched.
    madvise(at_, bytes_, MADV_NOHUGEPAGE);
  }
  ~Reserved() { munmap(at_, bytes_); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  void touch(size_t page) { at_[page * kPage] = 1; }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(at_); }

 private:
  size_t bytes_;
  char* at_;
};

std::vector<PageRun> runs_of(uintptr_t begin, size_t pages, const PresentLook& look = {}) {
  std::vector<PageRun> found;
  PresentRuns runs(begin, pages, look);
  for (PageRun run; runs.next(&run);) found.push_back(run);
  return found;
}

TEST(PresentPagesOf, SmallRangesAreNotLookedAt) {
  const Reserved memory(100);
  const auto runs = runs_of(memory.begin(), 100);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].first, 0u);
  EXPECT_EQ(runs[0].count, 100u);
}

class PresentPages : public testing::TestWithParam<bool> {
 protected:
  PresentPages() { look_.by_mincore = GetParam(); }
  PresentLook look_;
};

TEST_P(PresentPages, NothingIsFoundInNothing) {
  const Reserved memory(1 << 20);
  EXPECT_TRUE(runs_of(memory.begin(), 1 << 20, look_).empty());
}

TEST_P(PresentPages, LargerGapsMakeLongerRuns) {
  Reserved memory(20000);
  for (size_t page = 0; page < 20000; page += 1000) memory.touch(page);
  look_.gap = 998;
  EXPECT_EQ(runs_of(memory.begin(), 20000, look_).size(), 20u);
  look_.gap = 999;
  const auto runs = runs_of(memory.begin(), 20000, look_);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].first, 0u);
  EXPECT_EQ(runs[0].count, 19001u);
  look_.gap = 0;
  look_.worth_a_look = 1;
  EXPECT_EQ(runs_of(memory.begin() + 1000 * kPage, 1, look_).size(), 1u);
  EXPECT_EQ(runs_of(memory.begin() + 1001 * kPage, 1, look_).size(), 0u);
}

// More runs than the kernel tells at once.
TEST_P(PresentPages, ManyRuns) {
  Reserved memory(60000);
  for (size_t page = 5; page < 60000; page += 10) memory.touch(page);
  look_.gap = 0;
  const auto runs = runs_of(memory.begin(), 60000, look_);
  ASSERT_EQ(runs.size(), 6000u);
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSERT_EQ(runs[i].first, 5 + 10 * i);
    ASSERT_EQ(runs[i].count, 1u);
  }
}

TEST_P(PresentPages, AllThatIsThereIsFoundOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const size_t pages = 8192 + random() % 40000;
    Reserved memory(pages);
    std::vector<bool> there(pages);
    for (unsigned n = random() % 60; n != 0; --n) {
      const size_t first = random() % pages;
      for (size_t i = first; i < pages && i < first + random() % 300; ++i) {
        memory.touch(i);
        there[i] = true;
      }
    }
    if (round % 3 == 0) {
      memory.touch(0);
      memory.touch(pages - 1);
      there[0] = there[pages - 1] = true;
    }
    size_t at = 0;
    for (const PageRun& run : runs_of(memory.begin(), pages, look_)) {
      ASSERT_NE(run.count, 0u);
      ASSERT_LE(run.first + run.count, pages);
      // Between the runs there is nothing; they begin and end with something, and have no large holes.
      for (; at < run.first; ++at) ASSERT_FALSE(there[at]) << round << ": " << at;
      ASSERT_TRUE(there[run.first] && there[run.first + run.count - 1]) << round;
      for (size_t hole = 0; at < run.first + run.count; ++at) {
        hole = there[at] ? 0 : hole + 1;
        ASSERT_LE(hole, 64u) << round << ": " << at;
      }
    }
    for (; at < pages; ++at) ASSERT_FALSE(there[at]) << round << ": " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(By, PresentPages, testing::Bool(),
                         [](const auto& info) { return info.param ? "mincore" : "scan"; });

}  // namespace
}  // namespace bosk::memory
