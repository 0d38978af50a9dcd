// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/spare_cpus.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/cpu_mask.h"

namespace {

using bosk::base::CpuMask;

TEST(SpareCpus, ThereIsNoneWhereEachCpuHasABusyThread) {
  const uint32_t cpus = bosk::base::cpus_of_calling_thread().count();
  ASSERT_GT(cpus, 0u);
  const int32_t before = bosk::base::spare_cpus();
  if (before == INT32_MAX) GTEST_SKIP() << "some CPUs are not ours, or there is no /proc/loadavg";
  EXPECT_LT(before, static_cast<int32_t>(cpus));  // this thread has one
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> begun{0};
  std::vector<std::thread> busy;
  for (uint32_t i = 0; i < cpus; ++i)
    busy.emplace_back([&] {
      begun.fetch_add(1);
      while (!stop.load()) {
      }
    });
  while (begun.load() != cpus) std::this_thread::yield();
  // Whose quota is used up does not want a CPU for a while.
  int32_t least = INT32_MAX;
  for (int i = 0; i < 100'000 && least > -1; ++i) {
    const int32_t now = bosk::base::spare_cpus();
    if (now < least) least = now;
  }
  EXPECT_LE(least, -1);
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(SpareCpus, WhoMayNotUseAllCpusCannotTell) {
  const CpuMask own = bosk::base::cpus_of_calling_thread();
  if (own.count() < 2) GTEST_SKIP() << "one CPU";
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
    }
  });
  std::thread([&] {
    CpuMask one;
    one.bytes = own.bytes;
    const uint32_t cpu = bosk::base::current_cpu();
    one.words[cpu / 64] = uint64_t{1} << cpu % 64;
    ASSERT_TRUE(bosk::base::set_cpus(one));
    EXPECT_TRUE(bosk::base::same_cpus(bosk::base::cpus_of_calling_thread(), one));
    // One of its own, and one that is wanted by two at least.
    EXPECT_EQ(bosk::base::spare_cpus(), INT32_MAX);
  }).join();
  stop = true;
  busy.join();
}

}  // namespace
