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

std::vector<PageRun> runs_of(uintptr_t begin, size_t pages) {
  std::vector<PageRun> found;
  PresentRuns runs(begin, pages);
  for (PageRun run; runs.next(&run);) found.push_back(run);
  return found;
}

TEST(PresentPages, SmallRangesAreNotLookedAt) {
  const Reserved memory(100);
  const auto runs = runs_of(memory.begin(), 100);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].first, 0u);
  EXPECT_EQ(runs[0].count, 100u);
}

TEST(PresentPages, NothingIsFoundInNothing) {
  const Reserved memory(1 << 20);
  EXPECT_TRUE(runs_of(memory.begin(), 1 << 20).empty());
}

TEST(PresentPages, AllThatIsThereIsFoundOnce) {
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
    for (const PageRun& run : runs_of(memory.begin(), pages)) {
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

}  // namespace
}  // namespace bosk::memory
