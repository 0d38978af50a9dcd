// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sixteen threads touch, mark again, cancel, fork and make system calls on one area for all, and every
// word they have written is looked at. BOSK_NEXT_TOUCH_OPERATIONS: how many operations for each backend (500000). An
// operation is a page that is written to or compared, or a call.
#include <stdlib.h>

#include <atomic>
#include <thread>
#include <vector>

#include "../unit/next_touch_support.h"
#include "memory/next_touch/kernel_nodes.h"
#include "page_lanes.h"

namespace bosk::memory {
namespace {

using testing::Area;
using testing::child_agrees;
using testing::common;
using testing::kPage;
using testing::Lane;
using testing::Random;

constexpr size_t kPages = 1600;  // some 2 MiB pieces, none of them aligned
constexpr unsigned kThreads = 16;

unsigned long operations() {
  const char* text = getenv("BOSK_NEXT_TOUCH_OPERATIONS");
  return text != nullptr ? strtoul(text, nullptr, 10) : 500'000;
}

struct Shared {
  const Area& area;
  NextTouchOptions options;
  bool calls_work;
  std::atomic<uint64_t> added{0};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> refused{0};
};

void run(Shared& shared, unsigned thread, unsigned long count) {
  Lane lane{shared.area.at(0), kPages, thread};
  Random random{thread * 7919 + 12345};
  int ends[2];
  if (pipe(ends) != 0) abort();
  NextTouchOptions options = shared.options;
  for (unsigned long done = 0; done < count; ++done) {
    const size_t page = random.below(kPages);
    const size_t pages = 1 + random.below(random.below(8) == 0 ? kPages - page : 40);
    const size_t end = page + pages < kPages ? page + pages : kPages;
    bool good = true;
    switch (random.below(64)) {
      default:
        for (size_t at = page; at < end && at < page + 8; ++at, ++done) lane.add(at);
        common(shared.area.at(0), page).fetch_add(1, std::memory_order_relaxed);
        shared.added.fetch_add(1, std::memory_order_relaxed);
        break;
      case 0 ... 7:
        for (size_t at = page; at < end; ++at, ++done) good = good && lane.good(at);
        break;
      case 8 ... 15:
        options.on_write = shared.options.on_write && random.below(2) == 0;
        options.window = static_cast<uint32_t>(random.below(3) * random.below(70));
        if (next_touch_mark(shared.area.at(page), (end - page) * kPage, options) != kNextTouchOk)
          shared.refused.fetch_add(1, std::memory_order_relaxed);
        break;
      case 16 ... 18:
        good = next_touch_cancel(shared.area.at(page), (end - page) * kPage) == kNextTouchOk;
        break;
      case 19 ... 20: {
        NextTouchState state;
        good = next_touch_query(shared.area.at(page), (end - page) * kPage, &state) == 0 &&
               state.marked <= state.pages && state.pages == end - page;
        break;
      }
      case 21 ... 26:
        good = testing::call_on(lane, page, ends, shared.calls_work);
        break;
      case 27:
        if (random.below(40) == 0) good = child_agrees(lane);
        break;
      case 28:
        if (random.below(40) == 0) next_touch_resolve_all();
        break;
      case 29: {
        // Moved by others, in place: must not disturb.
        void* at[1] = {shared.area.at(page)};
        int node[1] = {0};
        int status[1] = {0};
        if (random.below(20) == 0)
          base::raw_syscall(SYS_move_pages, 0, 1, base::address_of(at), base::address_of(node),
                            base::address_of(status), 2);
        break;
      }
    }
    if (!good) shared.wrong.fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t wrong = 0;
  for (size_t page = 0; page < kPages; ++page) wrong += lane.good(page) ? 0 : 1;
  shared.wrong.fetch_add(wrong, std::memory_order_relaxed);
  close(ends[0]);
  close(ends[1]);
}

class NextTouchStress : public ::testing::TestWithParam<NextTouchBackend> {};

void expect_no_byte_lost(NextTouchBackend backend) {
  const Area area(kPages);
  Shared shared{area, {}, backend == NextTouchBackend::kUffdThread};
  shared.options.backend = backend;
  shared.options.on_write = true;
  const NextTouchStatistics before = next_touch_statistics();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { run(shared, i, operations() / kThreads); });
  for (std::thread& thread : threads) thread.join();
  const NextTouchStatistics after = next_touch_statistics();
  EXPECT_EQ(shared.wrong.load(), 0u);
  EXPECT_EQ(shared.refused.load(), 0u);
  EXPECT_EQ(after.lost, before.lost);
  uint64_t sum = 0;
  for (size_t page = 0; page < kPages; ++page) sum += common(area.at(0), page).load();
  EXPECT_EQ(sum, shared.added.load());
  EXPECT_GT(after.faults, before.faults);
  EXPECT_GT(after.cancelled, before.cancelled);
}

TEST_P(NextTouchStress, LosesNoByte) {
  if (!next_touch_available(GetParam())) GTEST_SKIP() << "not allowed here";
  expect_no_byte_lost(GetParam());
}

TEST_P(NextTouchStress, LosesNoByteBetweenNodes) {
  if (!next_touch_available(GetParam())) GTEST_SKIP() << "not allowed here";
  // Half of the threads on either node, and every 16 pages on the other: most touches copy, and pages that have
  // become free are used again.
  static const KernelNodesForTests two = {
      2, [] { return static_cast<uint32_t>(base::thread_id()) % 2; },
      [](uintptr_t page) { return static_cast<int>(page / kPage / 16 % 2); },
      [](uint32_t) { return uint64_t{1} << 30; }};
  set_kernel_nodes_for_tests(&two);
  const NextTouchStatistics before = next_touch_statistics();
  expect_no_byte_lost(GetParam());
  const NextTouchStatistics after = next_touch_statistics();
  set_kernel_nodes_for_tests(nullptr);
  EXPECT_GT(after.moved, before.moved);
  EXPECT_EQ(after.exchanged > before.exchanged, GetParam() == NextTouchBackend::kUffd);
}

INSTANTIATE_TEST_SUITE_P(Backends, NextTouchStress, testing::kBackends, testing::name_of_backend);

}  // namespace
}  // namespace bosk::memory
