// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Large reservations of which little has been touched: marks go by what is there.
#include <stdio.h>

#include <vector>

#include "next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::kPage;

class Reservation {
 public:
  explicit Reservation(size_t pages) : pages_(pages) {
    at_ = static_cast<char*>(mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (at_ == MAP_FAILED) abort();
    // Huge ones would be there between those that are touched.
    madvise(at_, pages * kPage, MADV_NOHUGEPAGE);
  }
  ~Reservation() {
    next_touch_cancel(at_, bytes());
    munmap(at_, bytes());
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  size_t bytes() const { return pages_ * kPage; }
  char* at() const { return at_; }
  volatile char& operator[](size_t page) const { return at_[page * kPage]; }
  uint64_t marked(size_t first, size_t pages) const {
    NextTouchState state = {};
    if (next_touch_query(at_ + first * kPage, pages * kPage, &state) != 0) abort();
    return state.marked;
  }
  uint64_t marked() const { return marked(0, pages_); }

 private:
  size_t pages_;
  char* at_;
};

size_t mappings() {
  FILE* maps = fopen("/proc/self/maps", "r");
  size_t lines = 0;
  for (int c; (c = getc(maps)) != EOF;) lines += c == '\n' ? 1 : 0;
  fclose(maps);
  return lines;
}

class Sparse : public testing::NextTouch {
 protected:
  int mark(const Reservation& memory) {
    return next_touch_mark(memory.at(), memory.bytes(), options_);
  }
};

constexpr size_t kGiB = (size_t{1} << 30) / kPage;

TEST_P(Sparse, NothingIsMarkedWhereNothingIs) {
  const Reservation memory(1024 * kGiB);
  EXPECT_EQ(mark(memory), kNextTouchOk);
  EXPECT_EQ(memory.marked(), 0u);
  memory[7 * kGiB] = 1;
  EXPECT_EQ(memory[7 * kGiB], 1);
  EXPECT_EQ(next_touch_cancel(memory.at(), memory.bytes()), kNextTouchOk);
  EXPECT_EQ(memory[7 * kGiB], 1);
  EXPECT_EQ(memory[7 * kGiB + 1], 0);
}

TEST_P(Sparse, WhatIsThereIsMarkedAndComes) {
  const Reservation memory(1024 * kGiB);
  std::vector<size_t> there;
  for (size_t i = 0; i < 100; ++i) there.push_back(i * 10 * kGiB + i * 77);
  for (const size_t page : there) memory[page] = 3;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(mark(memory), kNextTouchOk);
    const uint64_t marked = memory.marked();
    EXPECT_EQ(marked, there.size());
    for (const size_t page : there) ASSERT_EQ(memory.marked(page, 1), 1u) << page;
    // Others come into being beside the marks, half of the marked are touched.
    for (size_t i = 0; i < 100; i += 2) {
      ASSERT_EQ(memory[there[i]], 3);
      memory[there[i] + 5 * kGiB + static_cast<size_t>(round)] = 3;
    }
    EXPECT_EQ(memory.marked(), marked - 50);
    for (size_t i = 0; i < 100; i += 2)
      there.push_back(there[i] + 5 * kGiB + static_cast<size_t>(round));
  }
  ASSERT_EQ(mark(memory), kNextTouchOk);
  for (const size_t page : there) ASSERT_EQ(memory.marked(page, 1), 1u) << page;
  EXPECT_LE(memory.marked(), 1000u);
  EXPECT_EQ(next_touch_cancel(memory.at(), 512 * kGiB * kPage), kNextTouchOk);
  for (const size_t page : there) ASSERT_EQ(memory.marked(page, 1), page < 512 * kGiB ? 0u : 1u);
  for (const size_t page : there) {
    ASSERT_EQ(memory[page], 3) << page;
    ASSERT_EQ(memory[page + 10], 0) << page;
  }
  EXPECT_EQ(memory.marked(0, 512 * kGiB), 0u);
}

TEST_P(Sparse, ScatteredPagesDoNotTakeAllMappings) {
  constexpr size_t kEvery = 1500;  // gaps that would be worth a stretch each
  constexpr size_t kPages = 3000;
  const Reservation memory(kEvery * kPages);
  for (size_t i = 0; i < kPages; ++i) memory[i * kEvery] = static_cast<char>(i);
  const size_t before = mappings();
  ASSERT_EQ(mark(memory), kNextTouchOk);
  EXPECT_LE(mappings(), before + 3 * 1024 + 3);
  for (size_t i = 0; i < kPages; ++i) ASSERT_EQ(memory.marked(i * kEvery, 1), 1u) << i;
  for (size_t i = 0; i < kPages; i += 50) ASSERT_EQ(memory[i * kEvery], static_cast<char>(i)) << i;
  ASSERT_EQ(mark(memory), kNextTouchOk);
  for (size_t i = 0; i < kPages; ++i) ASSERT_EQ(memory.marked(i * kEvery, 1), 1u) << i;
  EXPECT_EQ(next_touch_cancel(memory.at(), memory.bytes()), kNextTouchOk);
  for (size_t i = 0; i < kPages; ++i) ASSERT_EQ(memory[i * kEvery], static_cast<char>(i)) << i;
}

TEST_P(Sparse, BlocksAndTheGapsBetweenThem) {
  const Reservation memory(16 * kGiB);
  const auto fill = [&](size_t first, size_t pages) {
    for (size_t i = 0; i < pages; ++i) memory[first + i] = static_cast<char>(first + i);
  };
  fill(100, 300);
  fill(700, 300);              // near: one stretch
  fill(5 * kGiB, 1300);        // alone
  fill(16 * kGiB - 200, 200);  // at the end
  options_.window = 64;
  ASSERT_EQ(mark(memory), kNextTouchOk);
  EXPECT_EQ(memory.marked(0, 2000), 900u);
  EXPECT_EQ(memory.marked(), 900u + 1300 + 200);
  const auto wrong = [&](size_t first, size_t pages) {
    size_t n = 0;
    for (size_t i = 0; i < pages; ++i)
      n += memory[first + i] == static_cast<char>(first + i) ? 0 : 1;
    return n;
  };
  EXPECT_EQ(wrong(100, 300) + wrong(700, 300) + wrong(5 * kGiB, 1300), 0u);
  EXPECT_EQ(memory.marked(5 * kGiB, 1300), 0u);
  EXPECT_EQ(memory.marked(16 * kGiB - 200, 200), 200u);
  EXPECT_EQ(memory[500], 0);
  EXPECT_EQ(wrong(16 * kGiB - 200, 200), 0u);
}

INSTANTIATE_TEST_SUITE_P(Backends, Sparse,
                         ::testing::Values(NextTouchBackend::kUffd, NextTouchBackend::kUffdThread,
                                           NextTouchBackend::kSigsegv),
                         testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
