// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For how long a region's function is expected to poll.
#include "sched/spins/polling_regions.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using bosk::sched::PollingRegions;

constexpr uintptr_t kFunction = 0x40'1230;
constexpr uintptr_t kOther = 0x40'4560;
const uint64_t kPatience = PollingRegions::kPatienceUs * bosk::base::cycles_per_microsecond();

/// Quiet regions, a tenth of `kPatience` each, until it is forgotten.
uint32_t quiet_until_forgotten(PollingRegions* regions, uint64_t* now) {
  uint32_t count = 0;
  for (; regions->has(kFunction) && count < 1000; ++count) {
    *now += kPatience / 10;
    regions->note_quiet(kFunction, *now);
  }
  return count;
}

TEST(PollingRegions, KnowThoseThatPolled) {
  PollingRegions regions;
  EXPECT_TRUE(regions.empty());
  regions.note_quiet(kFunction, 0);
  EXPECT_TRUE(regions.empty());
  regions.note_polling(kFunction, 1);
  EXPECT_FALSE(regions.empty());
  EXPECT_TRUE(regions.has(kFunction));
  EXPECT_FALSE(regions.has(kOther));
}

TEST(PollingRegions, ForgetWhatIsQuietAndLessSoonEachTime) {
  PollingRegions regions;
  uint64_t now = 77;
  for (const uint32_t expected : {10, 20, 40, 80}) {
    regions.note_polling(kFunction, now);
    EXPECT_NEAR(quiet_until_forgotten(&regions, &now), expected, 1);
  }
}

TEST(PollingRegions, LongOnesAreForgottenAfterAFew) {
  PollingRegions regions;
  regions.note_polling(kFunction, 1);
  uint64_t now = 1;
  for (uint32_t i = 1; i < PollingRegions::kFewest; ++i) {
    regions.note_quiet(kFunction, now += 10 * kPatience);
    EXPECT_TRUE(regions.has(kFunction));
  }
  regions.note_quiet(kFunction, now += 10 * kPatience);
  EXPECT_FALSE(regions.has(kFunction));
}

TEST(PollingRegions, ThoseThatPollNowAndThenAreKept) {
  PollingRegions regions;
  uint64_t now = 1;
  for (int round = 0; round < 50; ++round) {
    regions.note_polling(kFunction, now);
    for (int quiet = 0; quiet < 9; ++quiet) regions.note_quiet(kFunction, now += kPatience / 10);
    EXPECT_TRUE(regions.has(kFunction));
  }
}

TEST(PollingRegions, WhatAnotherDoesKeepsNobody) {
  PollingRegions regions;
  regions.note_polling(kFunction, 1);
  uint64_t now = 1;
  for (int i = 0; i < 20; ++i) {
    regions.note_polling(kOther, now += kPatience / 10);
    regions.note_quiet(kFunction, now);
  }
  EXPECT_FALSE(regions.has(kFunction));
  EXPECT_TRUE(regions.has(kOther));
}

TEST(PollingRegions, AClockThatIsBehindForgetsNothing) {
  PollingRegions regions;
  regions.note_polling(kFunction, 1000);
  for (int i = 0; i < 10; ++i) regions.note_quiet(kFunction, 900);
  EXPECT_TRUE(regions.has(kFunction));
}

TEST(PollingRegions, MoreThanThereIsRoomForStayUnknown) {
  PollingRegions regions;
  std::vector<uintptr_t> kept;
  for (uintptr_t function = 16; function < 16 * 2000; function += 16) {
    regions.note_polling(function, 1);
    if (regions.has(function)) kept.push_back(function);
  }
  EXPECT_GE(kept.size(), 200u);
  EXPECT_LE(kept.size(), 256u);
  for (const uintptr_t function : kept) EXPECT_TRUE(regions.has(function));
}

TEST(PollingRegions, AreNotedByManyAtOnce) {
  PollingRegions regions;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (uintptr_t at = 1; at <= 80; ++at) regions.note_polling(at * 4096, 1);
    });
  for (auto& thread : threads) thread.join();
  for (uintptr_t at = 1; at <= 80; ++at) EXPECT_TRUE(regions.has(at * 4096));
}

}  // namespace
