// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sixteen threads touch, mark again, cancel, fork and make system calls on one area for all, and every
// word they have written is looked at. BOSK_NEXT_TOUCH_OPERATIONS: how many operations in all (40000).
#include <errno.h>
#include <stdlib.h>

#include <atomic>
#include <thread>
#include <vector>

#include "../unit/next_touch_support.h"

namespace bosk::memory {
namespace {

using testing::Area;
using testing::kPage;

constexpr size_t kPages = 1600;  // some 2 MiB pieces, none of them aligned
constexpr unsigned kThreads = 16;

unsigned long operations() {
  const char* text = getenv("BOSK_NEXT_TOUCH_OPERATIONS");
  return text != nullptr ? strtoul(text, nullptr, 10) : 40'000;
}

struct Random {
  uint64_t state;
  uint64_t below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
  }
};

/// One thread's part of each page: a counter and its complement at a place of its own, and what it must be.
struct Lane {
  const Area& area;
  unsigned thread;
  std::vector<uint64_t> expected = std::vector<uint64_t>(kPages, 0);

  std::atomic<uint64_t>* words(size_t page) const {
    return reinterpret_cast<std::atomic<uint64_t>*>(area.at(page)) + 4 * size_t{thread};
  }
  void add(size_t page) {
    std::atomic<uint64_t>* w = words(page);
    w[0].store(w[0].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    w[1].store(~w[0].load(std::memory_order_relaxed), std::memory_order_relaxed);
    ++expected[page];
  }
  bool good(size_t page) const {
    const uint64_t value = words(page)[0].load(std::memory_order_relaxed);
    const uint64_t complement = words(page)[1].load(std::memory_order_relaxed);
    return value == expected[page] && complement == (value == 0 ? 0 : ~value);
  }
};

/// Counters that all threads add to, at the end of each page.
std::atomic<uint64_t>& common(const Area& area, size_t page) {
  return reinterpret_cast<std::atomic<uint64_t>*>(area.at(page + 1))[-1];
}

struct Shared {
  const Area& area;
  NextTouchOptions options;
  bool calls_work;
  std::atomic<uint64_t> added{0};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> refused{0};
};

/// A child sees what this thread has written so far, and no page of the others is torn.
bool child_agrees(Shared& shared, const Lane& lane) {
  const pid_t child = fork();
  if (child < 0) return true;  // no process to be had
  if (child == 0) {
    for (size_t page = 0; page < kPages; ++page)
      if (!lane.good(page)) _exit(1);
    (void)shared;
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

/// Writes its part of a page out by a system call and reads it back, where that works on marked pages.
bool call_on(Shared& shared, Lane& lane, size_t page, int ends[2]) {
  std::atomic<uint64_t>* w = lane.words(page);
  // One pipe for each thread, never more than this in it.
  const ssize_t put = write(ends[1], static_cast<void*>(w), 16);
  if (put != 16) return !shared.calls_work && put < 0 && errno == EFAULT;
  if (shared.calls_work) return read(ends[0], static_cast<void*>(w), 16) == 16;
  uint64_t copy[2];
  return read(ends[0], copy, sizeof copy) == sizeof copy && copy[0] == lane.expected[page];
}

void run(Shared& shared, unsigned thread, unsigned long count) {
  Lane lane{shared.area, thread};
  Random random{thread * 7919 + 12345};
  int ends[2];
  if (pipe(ends) != 0) abort();
  NextTouchOptions options = shared.options;
  for (unsigned long i = 0; i < count; ++i) {
    const size_t page = random.below(kPages);
    const size_t pages = 1 + random.below(random.below(8) == 0 ? kPages - page : 40);
    const size_t end = page + pages < kPages ? page + pages : kPages;
    bool good = true;
    switch (random.below(64)) {
      default:
        for (size_t at = page; at < end && at < page + 8; ++at) lane.add(at);
        common(shared.area, page).fetch_add(1, std::memory_order_relaxed);
        shared.added.fetch_add(1, std::memory_order_relaxed);
        break;
      case 0 ... 7:
        for (size_t at = page; at < end; ++at) good = good && lane.good(at);
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
        good = call_on(shared, lane, page, ends);
        break;
      case 27:
        if (random.below(40) == 0) good = child_agrees(shared, lane);
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

TEST_P(NextTouchStress, LosesNoByte) {
  if (!next_touch_available(GetParam())) GTEST_SKIP() << "not allowed here";
  const Area area(kPages);
  Shared shared{area, {}, GetParam() == NextTouchBackend::kUffdThread};
  shared.options.backend = GetParam();
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
  for (size_t page = 0; page < kPages; ++page) sum += common(area, page).load();
  EXPECT_EQ(sum, shared.added.load());
  EXPECT_GT(after.faults, before.faults);
  EXPECT_GT(after.cancelled, before.cancelled);
}

INSTANTIATE_TEST_SUITE_P(Backends, NextTouchStress,
                         ::testing::Values(NextTouchBackend::kUffd, NextTouchBackend::kUffdThread,
                                           NextTouchBackend::kSigsegv),
                         [](const auto& info) {
                           std::string name = next_touch_backend_name(info.param);
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace bosk::memory
