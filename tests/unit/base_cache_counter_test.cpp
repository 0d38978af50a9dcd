// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pair of counters, on events that every kernel has.
#include "base/cache_counter.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "base/pages.h"

namespace {

using bosk::base::CacheCount;
using bosk::base::CacheCounter;

TEST(CacheCounter, CountsTwoEventsOfTheCallingThread) {
  CacheCounter counter;
  if (!counter.open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN))
    GTEST_SKIP() << "perf_event_open is not allowed here";
  constexpr size_t kPages = 64;
  CacheCount before;
  CacheCount after;
  ASSERT_TRUE(counter.read(&before));
  auto* memory =
      static_cast<volatile char*>(mmap(nullptr, kPages * bosk::base::kPage, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  madvise(const_cast<char*>(memory), kPages * bosk::base::kPage, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < kPages; ++i) memory[i * bosk::base::kPage] = 1;
  ASSERT_TRUE(counter.read(&after));
  EXPECT_GE(after.accesses - before.accesses, kPages);
  EXPECT_GE(after.misses - before.misses, kPages);
  munmap(const_cast<char*>(memory), kPages * bosk::base::kPage);
  counter.close();
  EXPECT_FALSE(counter.read(&after));
}

TEST(CacheCounter, AnEventThatDoesNotExistIsNoCounter) {
  CacheCounter counter;
  CacheCount count;
  EXPECT_FALSE(counter.open(PERF_TYPE_SOFTWARE, 4711, 4712));
  EXPECT_FALSE(counter.open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 4712));
  EXPECT_FALSE(counter.read(&count));
}

}  // namespace
