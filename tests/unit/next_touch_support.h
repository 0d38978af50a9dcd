// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory whose contents can be told page by page, and what the tests of all backends begin with.
#pragma once

#include <gtest/gtest.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "memory/next_touch/backend.h"
#include "memory/next_touch/next_touch.h"

namespace bosk::memory::testing {

constexpr size_t kPage = 4096;

/// Pages of their own mapping. `aligned`: the first one lies at a multiple of so many.
class Area {
 public:
  explicit Area(size_t pages, size_t aligned = 1) : pages_(pages) {
    mapped_ = (pages + aligned) * kPage;
    base_ = static_cast<char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) abort();
    const uintptr_t unit = aligned * kPage;
    memory_ =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(base_) + unit - 1) / unit * unit);
  }
  ~Area() {
    next_touch_cancel(base_, mapped_);
    munmap(base_, mapped_);
  }
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  char* at(size_t page) const { return memory_ + page * kPage; }
  size_t pages() const { return pages_; }
  size_t bytes() const { return pages_ * kPage; }

  void fill_page(size_t page, unsigned what) const {
    auto* word = reinterpret_cast<uint64_t*>(at(page));
    for (size_t i = 0; i < kPage / sizeof *word; i += 73) word[i] = value(page, what, i);
  }
  void fill(unsigned what) const {
    for (size_t page = 0; page < pages_; ++page) fill_page(page, what);
  }
  bool page_is(size_t page, unsigned what) const {
    const auto* word = reinterpret_cast<const volatile uint64_t*>(at(page));
    for (size_t i = 0; i < kPage / sizeof *word; i += 73)
      if (word[i] != value(page, what, i)) return false;
    return true;
  }
  bool page_is_zero(size_t page) const {
    const auto* word = reinterpret_cast<const volatile uint64_t*>(at(page));
    for (size_t i = 0; i < kPage / sizeof *word; ++i)
      if (word[i] != 0) return false;
    return true;
  }
  /// Pages that are not as fill(what) has left them.
  size_t wrong(unsigned what) const {
    size_t n = 0;
    for (size_t page = 0; page < pages_; ++page) n += page_is(page, what) ? 0 : 1;
    return n;
  }

 private:
  static uint64_t value(size_t page, unsigned what, size_t i) {
    return (page + 1) * 0x9e3779b97f4a7c15u + what * 1'000'003u + i;
  }
  size_t pages_;
  size_t mapped_;
  char* base_;
  char* memory_;
};

inline size_t marked_in(const Area& area) {
  NextTouchState state = {};
  if (next_touch_query(area.at(0), area.bytes(), &state) != 0) return SIZE_MAX;
  return state.marked;
}

/// The same checks for every backend that may be used here.
class NextTouch : public ::testing::TestWithParam<NextTouchBackend> {
 protected:
  void SetUp() override {
    if (!next_touch_available(GetParam()))
      GTEST_SKIP() << "not allowed here: " << next_touch_backend_name(GetParam());
    options_.backend = GetParam();
    options_.window = 1;
  }
  void TearDown() override { next_touch_resolve_all(); }

  int mark(const Area& area) { return next_touch_mark(area.at(0), area.bytes(), options_); }
  /// Marks and says that all is marked.
  void expect_mark(const Area& area) {
    ASSERT_EQ(mark(area), kNextTouchOk);
    ASSERT_EQ(marked_in(area), area.pages());
  }
  bool calls_work() const { return GetParam() == NextTouchBackend::kUffdThread; }

  NextTouchOptions options_;
};

inline const auto kBackends = ::testing::Values(
    NextTouchBackend::kUffd, NextTouchBackend::kUffdThread, NextTouchBackend::kSigsegv);

inline std::string name_of_backend(const ::testing::TestParamInfo<NextTouchBackend>& info) {
  std::string name = next_touch_backend_name(info.param);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

}  // namespace bosk::memory::testing
