// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pair of counters, on events that every kernel has.
#include "base/cache_counter.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/pages.h"
#include "base/syscalls.h"

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

TEST(CacheCounter, CountsAnotherThread) {
  std::atomic<int> tid{0};
  std::atomic<bool> go{false};
  std::thread other([&] {
    tid.store(bosk::base::thread_id());
    while (!go.load()) sched_yield();
    constexpr size_t kPages = 64;
    void* memory = mmap(nullptr, kPages * bosk::base::kPage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    madvise(memory, kPages * bosk::base::kPage, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < kPages; ++i)
      static_cast<volatile char*>(memory)[i * bosk::base::kPage] = 1;
    munmap(memory, kPages * bosk::base::kPage);
  });
  while (tid.load() == 0) sched_yield();
  CacheCounter counter;
  const bool opened = counter.open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
                                   PERF_COUNT_SW_PAGE_FAULTS_MIN, tid.load());
  go.store(true);
  other.join();
  if (!opened) GTEST_SKIP() << "perf_event_open is not allowed here";
  CacheCount count;
  ASSERT_TRUE(counter.read_some(&count));
  EXPECT_GE(count.accesses, 64u);
  counter.close();
}

/// Whoever closes all descriptors and opens some of its own is neither read from nor closed.
TEST(CacheCounter, WhatHasItsNumberNowIsLeftAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int first = ends[0];
  close(ends[0]);
  CacheCounter counter;  // gets the number of what has just been closed
  if (!counter.open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN))
    GTEST_SKIP() << "perf_event_open is not allowed here";
  CacheCount count;
  ASSERT_TRUE(counter.read(&count));
  int mine[2];
  ASSERT_EQ(pipe(mine), 0);
  ASSERT_EQ(dup2(mine[0], first), first);
  EXPECT_FALSE(counter.read(&count));  // and it does not wait for the pipe
  EXPECT_FALSE(counter.read_some(&count));
  counter.close();
  char byte = 7;
  EXPECT_EQ(write(mine[1], &byte, 1), 1);
  byte = 0;
  EXPECT_EQ(read(first, &byte, 1), 1);
  EXPECT_EQ(byte, 7);
  for (const int end : {first, mine[0], mine[1], ends[1]}) close(end);
}

TEST(CacheCounter, AnEventThatDoesNotExistIsNoCounter) {
  CacheCounter counter;
  CacheCount count;
  EXPECT_FALSE(counter.open(PERF_TYPE_SOFTWARE, 4711, 4712));
  EXPECT_FALSE(counter.open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 4712));
  EXPECT_FALSE(counter.read(&count));
}

}  // namespace
