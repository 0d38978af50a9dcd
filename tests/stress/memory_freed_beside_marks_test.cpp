// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A policy marks areas that it has looked up while the program frees them: no mark outlives its area, and what comes to the same
// addresses is left alone.
#include <bosk/error.h>

#include <atomic>
#include <thread>

#include "../unit/next_touch_support.h"
#include "memory/area_migration.h"
#include "memory/manager.h"
#include "memory/page_blocks.h"
#include "topology/source.h"

namespace bosk::memory {
namespace {

using testing::kPage;

class FreedBesideMarks : public ::testing::TestWithParam<NextTouchBackend> {};

TEST_P(FreedBesideMarks, LeavesNoMarks) {
  if (!next_touch_available(GetParam())) GTEST_SKIP() << "not allowed here";
  AreaTable* areas = start(*topology::process_machine(nullptr));
  ASSERT_NE(areas, nullptr);
  ASSERT_FALSE(next_touch_anywhere());
  constexpr int kRounds = 8'000;
  constexpr size_t kPages = 4;
  std::atomic<uintptr_t> latest{0};
  std::atomic<bool> done{false};
  std::thread policy([&] {
    NextTouchOptions options;
    options.backend = GetParam();
    uint64_t last = 0;
    int times = 0;  // not for ever: who touches would get nowhere
    while (!done.load(std::memory_order_relaxed)) {
      AreaInfo area;
      const uintptr_t at = latest.load(std::memory_order_relaxed);
      if (at == 0 || !areas->look_up(at, &area)) continue;
      times = area.serial == last ? times + 1 : 0;
      last = area.serial;
      if (times < 16) mark_area(*areas, area, area.begin, area.bytes(), options);
    }
  });
  size_t wrong = 0;
  for (int i = 0; i < kRounds; ++i) {
    PageRequest request;
    request.bytes = kPages * kPage;
    void* block;
    ASSERT_EQ(allocate_pages(*areas, request, &block), BOSK_OK);
    latest.store(reinterpret_cast<uintptr_t>(block), std::memory_order_relaxed);
    auto* bytes = static_cast<volatile char*>(block);
    for (size_t page = 0; page < kPages; ++page)
      bytes[page * kPage] = static_cast<char>(i + static_cast<int>(page));
    for (size_t page = 0; page < kPages; ++page)
      wrong += bytes[page * kPage] != static_cast<char>(i + static_cast<int>(page));
    ASSERT_EQ(free_pages(*areas, block), BOSK_OK);
  }
  done.store(true, std::memory_order_relaxed);
  policy.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_FALSE(next_touch_anywhere()) << "a mark has outlived its area";
}

INSTANTIATE_TEST_SUITE_P(Backends, FreedBesideMarks, testing::kBackends, testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
