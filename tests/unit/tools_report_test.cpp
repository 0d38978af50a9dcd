// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `bosk run --report` says of figures: the verdicts, the page, the JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "bosk/report/advice.h"
#include "bosk/report/process_report.h"
#include "bosk/report/report_difference.h"
#include "bosk/report/report_file.h"
#include "bosk/report/report_json.h"
#include "bosk/report/report_page.h"

namespace bosk::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// Ten seconds of two CPUs in one region that computes all the time.
ProcessReport balanced() {
  ProcessReport report;
  report.process = 42;
  report.program = "./app";
  report.has_ended = true;
  report.elapsed = 10;
  report.cpus = 2;
  RegionReport region;
  region.where = "app.c:7";
  region.file = "/home/me/app";
  region.smallest = region.largest = 2;
  region.calls = 10;
  region.open = 10;
  region.longest = 1.1;
  region.shares.computing = 20;
  report.regions.push_back(region);
  report.shares.computing = 20;
  return report;
}

/// `seconds` of what it computed are lost by something else.
ProcessReport with_lost(double Shares::* what, double seconds) {
  ProcessReport report = balanced();
  for (Shares* shares : {&report.shares, &report.regions[0].shares}) {
    shares->computing -= seconds;
    shares->*what += seconds;
  }
  return report;
}

std::vector<AdviceKind> kinds(const ProcessReport& report) {
  std::vector<AdviceKind> result;
  for (const Advice& advice : advice_for(report)) result.push_back(advice.kind);
  return result;
}

TEST(ToolsReport, NothingIsWrongWithWhatComputes) {
  EXPECT_THAT(kinds(balanced()), IsEmpty());
  EXPECT_THAT(report_page(balanced()), HasSubstr("Nothing to change"));
}

TEST(ToolsReport, OneFaultOneVerdict) {
  EXPECT_THAT(kinds(with_lost(&Shares::imbalance, 8)), ElementsAre(AdviceKind::kImbalance));
  EXPECT_THAT(kinds(with_lost(&Shares::barrier, 8)), ElementsAre(AdviceKind::kBarrier));
  EXPECT_THAT(kinds(with_lost(&Shares::waiting, 8)), ElementsAre(AdviceKind::kLocks));
  EXPECT_THAT(kinds(with_lost(&Shares::yielding, 8)), ElementsAre(AdviceKind::kYields));
  EXPECT_THAT(kinds(with_lost(&Shares::polling, 8)), ElementsAre(AdviceKind::kPolling));
  EXPECT_THAT(kinds(with_lost(&Shares::blocked, 8)), ElementsAre(AdviceKind::kBlocked));
}

TEST(ToolsReport, WhatIsLittleIsNotWorthAWord) {
  EXPECT_THAT(kinds(with_lost(&Shares::imbalance, 0.9)), IsEmpty());
  EXPECT_THAT(kinds(with_lost(&Shares::imbalance, 1.1)), ElementsAre(AdviceKind::kImbalance));
}

TEST(ToolsReport, TheLargestLossComesFirst) {
  ProcessReport report = with_lost(&Shares::imbalance, 4);
  for (Shares* shares : {&report.shares, &report.regions[0].shares}) {
    shares->computing -= 6;
    shares->blocked += 6;
  }
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kBlocked, AdviceKind::kImbalance));
  EXPECT_NEAR(advice_for(report)[0].lost, 0.3, 1e-9);
}

TEST(ToolsReport, WhoComesLateBecauseOfALockIsNoImbalance) {
  ProcessReport report = with_lost(&Shares::imbalance, 5);
  for (Shares* shares : {&report.shares, &report.regions[0].shares}) {
    shares->computing -= 4;
    shares->waiting += 4;
  }
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kLocks));
  EXPECT_NEAR(advice_for(report)[0].lost, 0.45, 1e-9);
}

TEST(ToolsReport, WhoWasPreemptedOftenHadCompany) {
  ProcessReport report = with_lost(&Shares::blocked, 8);
  report.preempted = 5000;
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kOtherProcesses));
}

TEST(ToolsReport, ARegionThatIsOpenedForNothingIsTooSmall) {
  ProcessReport report = with_lost(&Shares::imbalance, 15);
  report.regions[0].calls = 1'000'000;
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kSmallRegions));
  EXPECT_THAT(advice_for(report)[0].cause, HasSubstr("1000000 times for 10 us each"));
  // So often, but for long.
  report.regions[0].calls = 10'000;
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kImbalance));
}

TEST(ToolsReport, OfTheSerialPartWhatTheOtherCpusMissIsLost) {
  ProcessReport report = balanced();
  report.shares.serial = 20;  // half of all, of two CPUs: 10 of 20 seconds of wall time
  const std::vector<Advice> advice = advice_for(report);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].kind, AdviceKind::kSerial);
  EXPECT_NEAR(advice[0].lost, 0.25, 1e-9);
  // 20 s in parallel and 10 s alone: never in less than 10.
  EXPECT_THAT(advice[0].remedy, HasSubstr("at most 3.0 times as fast"));
  report.cpus = 1;
  EXPECT_THAT(kinds(report), IsEmpty());
}

TEST(ToolsReport, TeamsOfABlasInsideOfRegionsAreNamed) {
  ProcessReport report = balanced();
  RegionReport inner = report.regions[0];
  inner.where = "libopenblas.so.0+0x12";
  inner.file = "/usr/lib/libopenblas.so.0";
  inner.level = 2;
  inner.shares = Shares{};
  inner.shares.computing = 2;
  inner.shares.imbalance = 4;
  report.shares.computing += 2;
  report.shares.imbalance += 4;
  report.regions.push_back(inner);
  EXPECT_THAT(kinds(report), testing::Contains(AdviceKind::kNestedBlas));
  report.regions[1].level = 1;
  EXPECT_THAT(kinds(report), Not(testing::Contains(AdviceKind::kNestedBlas)));
}

TEST(ToolsReport, KernelThreadsMatterWhereThereAreMoreThanCpus) {
  ProcessReport report = with_lost(&Shares::imbalance, 8);
  report.why_kernel_threads = "libx.so (pthread_kill)";
  report.regions[0].modes = {"kernel-threads"};
  EXPECT_THAT(kinds(report), Not(testing::Contains(AdviceKind::kKernelThreads)));
  report.regions[0].largest = 8;
  EXPECT_THAT(kinds(report), testing::Contains(AdviceKind::kKernelThreads));
  report.wait_policy = "active";
  EXPECT_THAT(kinds(report), testing::Contains(AdviceKind::kActiveWait));
  EXPECT_THAT(report_page(report), HasSubstr("libx.so (pthread_kill)"));
}

TEST(ToolsReport, WhoIsAsleepWhenRegionsBeginIsTold) {
  ProcessReport report = with_lost(&Shares::imbalance, 10);
  report.regions[0].calls = 100'000;  // of .1 ms
  report.counters = {{"sleeps", 90'000}};
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kImbalance));
  report.wait_policy = "passive";
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kPassiveWait, AdviceKind::kImbalance));
  EXPECT_NEAR(advice_for(report)[0].lost, 0.5, 1e-9);
  report.counters = {{"sleeps", 10'000}};
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kImbalance));
  report.counters = {{"sleeps", 90'000}};
  // Nobody minds before a region that takes long.
  report.regions[0].calls = 1000;
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kImbalance));
}

TEST(ToolsReport, PagesThatAreTouchedOnceWantToBeLarge) {
  ProcessReport report = balanced();
  report.system_time = 4;
  report.page_faults = 4 << 20;  // 2.9 s
  report.memory.own = uint64_t{16} << 30;
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kHugePages));
  EXPECT_NEAR(advice_for(report)[0].lost, 0.147, 1e-3);
  report.memory.huge = uint64_t{12} << 30;
  EXPECT_THAT(kinds(report), IsEmpty());
  // The same memory again and again.
  report.memory.own = uint64_t{64} << 20;
  report.memory.huge = 0;
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kPageFaults));
  // The kernel has not spent so much at all.
  report.system_time = 0.1;
  EXPECT_THAT(kinds(report), IsEmpty());
}

TEST(ToolsReport, MemoryOnOneNodeIsFarForTheOthersCpus) {
  ProcessReport report = balanced();
  report.memory.nodes = {uint64_t{2} << 30, 0, 0, uint64_t{100} << 20};
  report.memory.node_cpus = {4, 4, 4, 4};
  EXPECT_THAT(kinds(report), ElementsAre(AdviceKind::kMemoryOnOneNode));
  EXPECT_THAT(advice_for(report)[0].cause,
              HasSubstr("95 % of 2.1 GiB are on node 0, which has 4 of its 16 CPUs"));
  report.memory.node_cpus = {16, 0, 0, 0};
  EXPECT_THAT(kinds(report), IsEmpty());
  report.memory.node_cpus = {4, 4, 4, 4};
  report.memory.nodes = {uint64_t{1} << 30, 0, 0, uint64_t{1} << 30};
  EXPECT_THAT(kinds(report), IsEmpty());
}

TEST(ToolsReport, AnotherRuntimeIsNamed) {
  ProcessReport report = balanced();
  report.other_runtime = "/venv/lib/libiomp5.so";
  EXPECT_THAT(report_page(report), HasSubstr("not seen  libiomp5.so is in the process as well"));
  report.regions.clear();
  EXPECT_EQ(
      report_page(report),
      "bosk: ./app (process 42): its OpenMP comes from libiomp5.so (Clang's or Intel's), which bosk does not serve yet; there "
      "is no report of it\n");
  EXPECT_THAT(kinds(report), IsEmpty());
}

TEST(ToolsReport, ModesAreToldWithTheirReason) {
  ProcessReport report = balanced();
  report.regions[0].modes = {"cpus"};
  EXPECT_THAT(report_page(report), Not(HasSubstr("user-level")));
  EXPECT_THAT(report_page(report), HasSubstr("CPU: no more threads than CPUs"));
  report.why_kernel_threads = "BOSK_IDENTITY=kthread";
  EXPECT_THAT(report_page(report), HasSubstr("BOSK_IDENTITY=kthread"));
  report.why_kernel_threads = "";
  report.regions[0].modes = {"cpus", "kernel-threads"};
  report.bound_teams = 3;
  EXPECT_THAT(report_page(report), testing::ContainsRegex("kernel: .*.bound to places"));
  EXPECT_THAT(report_page(report), HasSubstr("mixed"));
}

TEST(ToolsReport, WhatWasDoneWithTeamsIsToldByRegion) {
  ProcessReport report = balanced();
  EXPECT_THAT(report_page(report), Not(HasSubstr("teams ")));
  report.policy = "spread";
  report.regions[0].teams = {{"placed", 4}, {"taken_whole", 1}, {"something_new", 3}};
  report.regions.push_back(report.regions[0]);
  report.regions[1].where = "other.c:1";
  report.regions[1].teams = {{"opened_as_gang", 5}};
  EXPECT_THAT(
      report_page(report),
      HasSubstr(
          "\nteams     placed by policy spread\n"
          "          app.c:7: its members were placed 4 times; CPUs of another node, which had "
          "nothing to do,\n"
          "            took it whole once\n"
          "          other.c:1: it was opened as a gang 5 times\n"));
  report.policy = "";
  EXPECT_THAT(report_page(report), HasSubstr("\nteams     app.c:7: its members"));
  // Only of regions that the page names.
  for (int i = 0; i < 8; ++i) report.regions.insert(report.regions.begin(), balanced().regions[0]);
  EXPECT_THAT(report_page(report), Not(HasSubstr("teams ")));
}

TEST(ToolsReport, ThePageBeginsWithTheVerdictAndIsShort) {
  ProcessReport report = with_lost(&Shares::imbalance, 8);
  report.policy = "spread";
  report.regions[0].teams = {{"placed", 4}, {"taken_whole", 12345}};
  for (int i = 0; i < 30; ++i) report.regions.push_back(report.regions[0]);
  const std::string page = report_page(report);
  EXPECT_THAT(page,
              StartsWith("bosk report of ./app: 10.0 s on 2 CPUs, process 42\n\nverdict   40 %"));
  EXPECT_THAT(page, HasSubstr("and 23 more"));
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 50);
}

TEST(ToolsReport, NamesAreEscaped) {
  ProcessReport report = with_lost(&Shares::imbalance, 8);
  report.program = "./bad\x1b[31m\xff";
  report.regions[0].where = "a\nb.c:1";
  const std::string page = report_page(report);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_THAT(page, HasSubstr("./bad\\x1b[31m\\xff"));
  EXPECT_THAT(page, HasSubstr("a\\nb.c:1"));
}

TEST(ToolsReport, JsonHasWhatThePageHas) {
  ProcessReport report = with_lost(&Shares::imbalance, 8);
  report.rank = 3;
  const auto json = nlohmann::json::parse(report_json({report, balanced()}, nullptr));
  EXPECT_EQ(json.at("bosk_report"), 1);
  ASSERT_EQ(json.at("processes").size(), 2u);
  const auto& first = json.at("processes").at(0);
  EXPECT_EQ(first.at("rank"), 3);
  EXPECT_EQ(first.at("shares").at("imbalance"), 8.0);
  EXPECT_EQ(first.at("regions").at(0).at("where"), "app.c:7");
  EXPECT_EQ(first.at("advice").at(0).at("kind"), "imbalance");
  EXPECT_TRUE(first.at("mode").at("why_kernel_threads").is_null());
  EXPECT_TRUE(json.at("processes").at(1).at("advice").empty());
  EXPECT_TRUE(json.at("processes").at(1).at("rank").is_null());
}

TEST(ToolsReport, WhatWasWrittenIsReadAgain) {
  ProcessReport report = with_lost(&Shares::imbalance, 8);
  report.rank = 3;
  report.observer = "libx.so (pthread_kill)";
  report.observed_teams = 7;
  report.wait_policy = "passive";
  report.memory = {1 << 20, 4096, {1 << 20, 0}, {2, 2}};
  report.counters = {{"switches", 5}, {"donors", 1}};
  report.policy = "gang";
  report.regions[0].modes = {"cpus", "user-level"};
  report.regions[0].teams = {{"opened_as_gang", 5}, {"gang_turns", 3}};
  const std::string json = report_json({report, balanced()}, nullptr);
  EXPECT_EQ(report_json(parse_report_file(json, "r.json"), nullptr), json);
}

TEST(ToolsReport, WhatIsNoReportIsNamed) {
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      parse_report_file(text, "r.json");
      return "none";
    } catch (const ReportFileError& error) {
      return error.what();
    }
  };
  const std::string json = report_json({balanced()}, nullptr);
  EXPECT_EQ(complaint(json), "none");
  EXPECT_EQ(complaint(json.substr(0, json.size() / 2)), "r.json: no JSON, or cut short");
  EXPECT_EQ(complaint(""), "r.json: no JSON, or cut short");
  EXPECT_THAT(complaint("[1]"), HasSubstr("not a report of bosk"));
  EXPECT_THAT(complaint(R"({"bosk_report": "x"})"), HasSubstr("not a report of bosk"));
  EXPECT_EQ(complaint(R"({"bosk_report": 2})"),
            "r.json: a report of version 2; this bosk reads version 1");
  EXPECT_THAT(complaint(R"({"bosk_report": 1})"), HasSubstr("a part of the report is missing"));
  EXPECT_THROW(read_report_file("/no/such/file"), ReportFileError);
}

TEST(ToolsReport, ADifferenceNamesWhatHasChanged) {
  const ProcessReport before = with_lost(&Shares::imbalance, 8);
  ProcessReport after = balanced();
  after.elapsed = 5;
  after.regions[0].open = 5;
  const std::string text = report_difference(before, after, "a.json", "b.json");
  EXPECT_THAT(text, StartsWith("b.json is 2 times as fast as a.json: 5 s, 10 s\n"));
  EXPECT_THAT(text, testing::ContainsRegex("imbalance .idle in regions. +8.000 +0.000 +-8.000"));
  EXPECT_THAT(text, testing::ContainsRegex("app.c:7 +10.000 +5.000 +-5.000"));
  const std::string same = report_difference(before, before, "a.json", "a.json");
  EXPECT_THAT(same, StartsWith("a.json takes as long as a.json"));
  EXPECT_THAT(same, HasSubstr("none is open for a longer or shorter time"));
  EXPECT_THAT(report_difference(after, before, "b", "a"),
              StartsWith("a takes 2 times as long as b"));
}

TEST(ToolsReport, ProcessesAreAddedUp) {
  const ProcessReport sum = sum_of({balanced(), balanced()});
  EXPECT_EQ(sum.elapsed, 10);
  EXPECT_EQ(sum.shares.computing, 40);
  EXPECT_EQ(sum.regions.size(), 2u);
}

constexpr const char* kText =
    R"({"process": 7, "program": "./a", "file": "/a", "rank": null, "other_runtime": "/b/libomp.so.5",
"has_ended": false, "elapsed": 2000000000, "before": 500000000, "cpus": 4, "wait_policy": "active", "policy": "burst:core",
"modes": {"why_kernel_threads": "x", "observed_teams": 1, "observer": null, "bound_teams": 2},
"usage": {"user": 1000000000, "system": 500000000, "memory_kib": 10, "preempted": 3, "page_faults": 4},
"memory": {"own": 4096, "huge": 0, "nodes": [4096, 0]}, "counters": {"switches": 5},
"regions": [
 {"function": 0, "modes": [], "level": 0, "threads": [0, 0], "calls": 0, "open": 0, "longest": 0, "shares":
  {"computing": 0, "imbalance": 0, "barrier": 0, "waiting": 0, "yielding": 0, "polling": 0, "blocked": 0, "runtime": 0, "serial": 1000000000}, "teams": {}},
 {"function": 16, "file": "/b", "offset": 16, "modes": ["cpus"], "level": 1, "threads": [2, 3], "calls": 5, "open": 1000, "longest": 500, "shares":
  {"computing": 4000000000, "imbalance": 0, "barrier": 0, "waiting": 0, "yielding": 0, "polling": 0, "blocked": 0, "runtime": 0, "serial": 0}, "teams": {"placed": 2, "gang_turns": 1}}]})";

TEST(ToolsReport, WhatTheLibraryHasToldIsRead) {
  const ProcessReport report = parse_report(kText);
  EXPECT_FALSE(report.has_ended);
  EXPECT_EQ(report.elapsed, 2);
  EXPECT_EQ(report.cpu_time, 1.5);
  EXPECT_EQ(report.system_time, 0.5);
  EXPECT_EQ(report.wait_policy, "active");
  EXPECT_EQ(report.other_runtime, "/b/libomp.so.5");
  EXPECT_EQ(report.page_faults, 4u);
  EXPECT_THAT(report.memory.nodes, ElementsAre(4096, 0));
  EXPECT_THAT(report.counters, ElementsAre(std::pair{std::string("switches"), uint64_t{5}}));
  ASSERT_EQ(report.regions.size(), 1u);
  EXPECT_EQ(report.regions[0].largest, 3u);
  EXPECT_THAT(report.regions[0].modes, ElementsAre("cpus"));
  EXPECT_THAT(report.regions[0].teams,
              ElementsAre(std::pair{std::string("placed"), uint64_t{2}},
                          std::pair{std::string("gang_turns"), uint64_t{1}}));
  EXPECT_EQ(report.policy, "burst:core");
  EXPECT_EQ(report.used_cpus(), 3u);
  // What came before the first region was serial, too, with the CPUs that its teams use later.
  EXPECT_EQ(report.shares.serial, 1 + 0.5 * 3);
  EXPECT_EQ(report.shares.computing, 4);
  EXPECT_THROW(parse_report("{"), std::exception);
  EXPECT_THROW(parse_report("{}"), std::exception);
}

}  // namespace
}  // namespace bosk::tools
