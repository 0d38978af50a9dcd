// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What becomes of a worker's time, by what it and its pool's opener do; and the samples of regions that run.
#include "sched/time_samples.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "in_child.h"
#include "omp/region_counts.h"
#include "omp/team.h"

namespace bosk::sched {
namespace {

constexpr Doing kOutside{Does::kSerial, 0};
constexpr Doing kInside{Does::kComputing, 3};

TEST(SchedTimeSamples, SerialIsWhatTheOpenerDoesOutsideWithAllWhoWait) {
  EXPECT_EQ(share_with_cpu(kOutside, true, kOutside), TimeShare::kSerial);
  EXPECT_EQ(share_without_cpu(kOutside, true, kOutside), TimeShare::kSerial);
  for (const Does what : {Does::kSerial, Does::kEnded}) {
    EXPECT_EQ(share_with_cpu({what, 3}, false, kOutside), TimeShare::kSerial);
    EXPECT_EQ(share_without_cpu({what, 3}, false, kOutside), TimeShare::kSerial);
  }
}

TEST(SchedTimeSamples, WhoHasEndedWhileARegionIsOpenIsImbalance) {
  for (const Does what : {Does::kSerial, Does::kEnded}) {
    EXPECT_EQ(share_with_cpu({what, 3}, false, kInside), TimeShare::kImbalance);
    EXPECT_EQ(share_without_cpu({what, 3}, false, kInside), TimeShare::kImbalance);
  }
  // The opener itself, in the join.
  EXPECT_EQ(share_with_cpu({Does::kEnded, 3}, true, {Does::kEnded, 3}), TimeShare::kImbalance);
}

TEST(SchedTimeSamples, TheProgramsCodeWithoutACpuIsBlocked) {
  EXPECT_EQ(share_with_cpu(kInside, false, kInside), TimeShare::kComputing);
  EXPECT_EQ(share_without_cpu(kInside, false, kInside), TimeShare::kBlocked);
  EXPECT_EQ(share_with_cpu({Does::kOpening, 3}, true, kInside), TimeShare::kRuntime);
  EXPECT_EQ(share_without_cpu({Does::kOpening, 3}, true, kInside), TimeShare::kBlocked);
  EXPECT_EQ(share_with_cpu({Does::kPolling, 3}, false, kInside), TimeShare::kPolling);
  EXPECT_EQ(share_without_cpu({Does::kPolling, 3}, false, kInside), TimeShare::kBlocked);
}

TEST(SchedTimeSamples, WaitsCountAsWhatTheyAreAsleepOrNot) {
  const struct {
    Does what;
    TimeShare share;
  } kCases[] = {{Does::kBarrier, TimeShare::kBarrier},
                {Does::kWaiting, TimeShare::kWaiting},
                {Does::kYielding, TimeShare::kYielding}};
  for (const auto& each : kCases) {
    EXPECT_EQ(share_with_cpu({each.what, 3}, false, kInside), each.share);
    EXPECT_EQ(share_without_cpu({each.what, 3}, false, kInside), each.share);
  }
}

TEST(SchedTimeSamples, CpusAreIdleAsFarAsThereAreWorkersForThem) {
  EXPECT_EQ(idle_of_cpus(1000, 4, 4, 3000), 1000u);
  // More kernel threads than CPUs: what they miss is not the CPUs' time.
  EXPECT_EQ(idle_of_cpus(1000, 2, 8, 2000), 0u);
  EXPECT_EQ(idle_of_cpus(1000, 2, 8, 1500), 500u);
  // Fewer workers than CPUs: the others are not this program's.
  EXPECT_EQ(idle_of_cpus(1000, 1024, 2, 500), 1500u);
  EXPECT_EQ(idle_of_cpus(1000, 2, 2, 2100), 0u);
}

TEST(SchedTimeSamples, AWordHoldsWhatAndWhere) {
  for (const Does what : {Does::kSerial, Does::kComputing, Does::kYielding})
    for (const uint32_t region : {0u, 1u, kSampledRegions - 1, (1u << 24) - 1})
      EXPECT_EQ(unpacked(packed({what, region})), (Doing{what, region}));
}

/// In a child: the sampler is the process's, and reads clocks.
std::string told_of_regions(void (*region)(void*), int calls) {
  const auto result = testing::in_child({{"BOSK_REPORT", "/dev/null"}, {"BOSK_WORKERS", "2"}}, [&] {
    for (int i = 0; i < calls; ++i) omp::parallel(region, nullptr, 2, 0);
    sample_now();
    base::MappedArray<omp::RegionLine> lines;
    if (!omp::collect_regions(&lines)) return std::string("no memory");
    std::string text;
    for (uint32_t i = 0; i < lines.size(); ++i) {
      if (lines[i].calls == 0) continue;
      const uint64_t computing = lines[i].shares_ns[static_cast<uint32_t>(TimeShare::kComputing)];
      text += std::to_string(lines[i].calls) + " calls, " + std::to_string(lines[i].smallest) +
              "-" + std::to_string(lines[i].largest) +
              (lines[i].open_ns != 0 ? ", open" : ", never open") +
              (computing != 0 ? ", computing" : "");
      if (lines[i].function != reinterpret_cast<void*>(region)) text += ", of another function";
    }
    return text;
  });
  return result.status == 0 ? result.output : "no answer: " + result.errors;
}

TEST(SchedTimeSamples, RegionsAreCountedAndTheirTimeIsSeen) {
  const auto computes = [](void*) {
    const uint64_t end = base::cycles() + 200'000 * base::cycles_per_microsecond();
    while (base::cycles() < end) {
    }
  };
  EXPECT_EQ(told_of_regions(computes, 2), "2 calls, 2-2, open, computing");
}

/// For ThreadSanitizer: the sampler looks on while members take turns, on threads that are new at first.
TEST(SchedTimeSamples, MembersTakeTurnsMeanwhile) {
  const auto result = testing::in_child({{"BOSK_REPORT", "/dev/null"}, {"BOSK_WORKERS", "2"}}, [] {
    for (int i = 0; i < 300; ++i)
      omp::parallel([](void*) { omp::barrier(); }, nullptr, 2 + i % 15, 0);
    return std::string("done");
  });
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "done");
}

TEST(SchedTimeSamples, ManyCallsAreAllCounted) {
  EXPECT_EQ(told_of_regions([](void*) {}, 3000).substr(0, 21), "3000 calls, 2-2, open");
}

}  // namespace
}  // namespace bosk::sched
