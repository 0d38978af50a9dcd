// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that touch the same few pages while these are marked again and again: nearly all of them find that somebody else
// has just resolved the page, some several times in a row, and none of them takes it for a fault of the program's.
#include <atomic>
#include <thread>
#include <vector>

#include "../unit/next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::Area;

class LateTouches : public testing::NextTouch {};

TEST_P(LateTouches, AreTouchedAgain) {
  constexpr int kMarks = 1000;
  constexpr int kTouchers = 6;
  constexpr size_t kTouched = 2;
  // One page more, so that the region stays when all that is touched has been resolved.
  const Area area(kTouched + 1);
  area.fill(1);
  options_.window = kTouched;
  ASSERT_EQ(next_touch_mark(area.at(0), area.bytes(), options_), kNextTouchOk);
  std::atomic<bool> done{false};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> touchers;
  touchers.reserve(kTouchers);
  for (int i = 0; i < kTouchers; ++i)
    touchers.emplace_back([&, page = static_cast<size_t>(i) % kTouched] {
      while (!done.load(std::memory_order_relaxed))
        wrong.fetch_add(area.page_is(page, 1) ? 0 : 1, std::memory_order_relaxed);
    });
  for (int i = 0; i < kMarks; ++i) {
    EXPECT_EQ(next_touch_mark(area.at(0), kTouched * testing::kPage, options_), kNextTouchOk);
    std::this_thread::yield();
  }
  done.store(true, std::memory_order_relaxed);
  for (std::thread& toucher : touchers) toucher.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(area.wrong(1), 0u);
}

INSTANTIATE_TEST_SUITE_P(Backends, LateTouches, testing::kBackends, testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
