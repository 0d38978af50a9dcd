// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text of BOSK_REPORT, from invented numbers; and the counting behind it.
#include "omp/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "topology_test_support.h"

namespace bosk::omp {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const ReportData& data) {
  base::MappedArray<char> text;
  EXPECT_TRUE(format_report(data, &text));
  std::string result(text.data(), text.size());
  text.release();
  return result;
}

/// None: there is no hwloc to make it.
topology::MachinePtr invented(const char* text) {
  topology::Error error;
  topology::MachineSource source;
  source.from = topology::MachineSource::From::kSynthetic;
  source.text = text;
  return topology::MachinePtr(topology::load_machine(source, &error));
}

void add_worker(ReportData* data, uint32_t index, uint64_t level1, uint64_t level2 = 0) {
  WorkerLine line;
  line.index = index;
  line.place = {true, index % 2 == 1, 1, index};
  line.members[0] = level1;
  line.members[1] = level2;
  ASSERT_TRUE(data->workers.push(line));
}

TEST(OmpReport, TellsTeamsPerLevelAndWhereTheyRan) {
  ReportData data;
  data.program = "./app";
  data.process = 42;
  data.process_cpus = 2;
  data.pools = 1;
  data.levels[0] = {10, 40, 4, 4};
  data.levels[1] = {40, 100, 2, 3};
  add_worker(&data, 0, 15, 70);
  add_worker(&data, 1, 25, 30);
  data.counts.ghosts_run = 130;
  data.counts.ghosts_stolen = 7;
  data.undisturbed = 100;
  data.counts.parked_ns = 1'500'000'000;
  const std::string text = text_of(data);
  EXPECT_THAT(text, HasSubstr("./app (process 42"));
  EXPECT_THAT(text, ContainsRegex("machine +2 CPUs"));
  EXPECT_THAT(text, ContainsRegex("\n +1 +10 +4 +40\n"));
  EXPECT_THAT(text, ContainsRegex("\n +2 +40 +2-3 +100\n"));
  EXPECT_THAT(text, ContainsRegex("\n +0 +free, last cpu 0 +15 +70\n"));
  EXPECT_THAT(text, ContainsRegex("\n +1 +bound, cpu 1 +25 +30\n"));
  EXPECT_THAT(text, HasSubstr("130 run, 7 of them"));
  EXPECT_THAT(text, HasSubstr("100 never"));
  EXPECT_THAT(text, HasSubstr("1.500 s in all"));
  EXPECT_THAT(text, Not(HasSubstr("threads of the program")));
  data.workers.release();
}

TEST(OmpReport, TellsWhatMovedWhileTheProgramRan) {
  ReportData data;
  for (const char* what : {"pulled", "bubbles", "looks", "next touch"})
    EXPECT_THAT(text_of(data), Not(HasSubstr(what)));
  data.entities_made.evolution = {.moved = 1,
                                  .regenerated = 2,
                                  .widened = 3,
                                  .threads = 4,
                                  .settled = 5,
                                  .ending = 6,
                                  .slices = 7,
                                  .renewed = 8,
                                  .phases = 9};
  data.entities_made.memory.looked[1] = 12;
  data.entities_made.memory.looked[4] = 3;
  data.entities_made.memory.closed[4] = 2;
  data.next_touch = {.marked = 21,
                     .moved = 10,
                     .local = 1,
                     .stayed = 2,
                     .no_room = 3,
                     .absent = 4,
                     .cancelled = 5,
                     .lost = 6,
                     .faults = 7,
                     .late = 8,
                     .chained = 9,
                     .exchanged = 11};
  const std::string text = text_of(data);
  EXPECT_THAT(text,
              HasSubstr("\npulled      1 closed bubbles, 2 open ones, 3 parts of larger ones, "
                        "4 threads; let alone: 5 pulled lately, 6 about to end\n"));
  EXPECT_THAT(text, HasSubstr("\nbubbles     7 closed at the end of their time slice, 8 went on "
                              "with a new one; 9 phases of redistribution\n"));
  EXPECT_THAT(text, HasSubstr("closed for it: idle 12, 0; remote 3, 2\n"));
  EXPECT_THAT(text,
              HasSubstr("\nnext touch  21 pages marked: 10 moved (11 of them in exchange), 1 "
                        "there already, 2 not allowed, 3 without room, 4 empty, 5 cancelled, 6 "
                        "lost\n            7 touches met a mark, 8 came late, 9 faults were the "
                        "program's own\n"));
}

TEST(OmpReport, TellsWhoWatchesMemory) {
  ReportData data;
  EXPECT_THAT(text_of(data), Not(HasSubstr("remote")));
  data.remote = {"what is made up", 0, 0, 0};
  EXPECT_THAT(text_of(data), HasSubstr("  remote    not watched: what is made up\n"));
  data.remote = {"what is made up", 12, 3, 0.25};
  EXPECT_THAT(text_of(data),
              HasSubstr("  remote    by what is made up: 12 looks, the last one found 25 %; "
                        "asked for a decision 3 times\n"));
}

TEST(OmpReport, TellsOfEachThreadWithAllThatItOpens) {
  ReportData data;
  EntityLine known;
  known.thread = 0;
  known.members = 30;
  known.ghosts = 20;
  known.measured = 29;
  known.cpu_ns = 1'234'000'000;
  known.counted = 29;
  known.accesses = 4000;
  known.misses = 500;
  known.load = 7;
  known.last_worker = 3;
  EntityLine unknown;
  unknown.thread = 1;
  unknown.members = 5;
  EntityLine short_lived = unknown;
  short_lived.thread = 2;
  short_lived.measured = 5;
  short_lived.cpu_ns = 1'200;
  for (const EntityLine& line : {known, unknown, short_lived})
    ASSERT_TRUE(data.entities.push(line));
  const std::string text = text_of(data);
  EXPECT_THAT(text, ContainsRegex("\n +0 +30 +20 +7 +1\\.234 +29 +12\\.5  worker 3\n"));
  // What is not known is never 0, and little is not nothing.
  EXPECT_THAT(text, ContainsRegex("\n +1 +5 +0 +- +- +0 +-  -\n"));
  EXPECT_THAT(text, ContainsRegex("\n +2 +5 +0 +- +0\\.000001 +5 +-  -\n"));
  EXPECT_THAT(text, ContainsRegex("\n +all +40 +20 +7 +1\\.234 +34 +12\\.5 *\n"));
  data.entities.release();
}

TEST(OmpReport, ThreadsShareLinesAndLoseNothing) {
  for (const uint32_t threads : {1u, 8u, 9u, 100u, 1024u}) {
    ReportData data;
    for (uint32_t i = 0; i < threads; ++i) {
      EntityLine line;
      line.thread = i;
      line.members = i;
      ASSERT_TRUE(data.entities.push(line));
    }
    const std::string text = text_of(data);
    uint64_t sum = 0;
    uint32_t lines = 0;
    size_t at = text.find('\n', text.find("entities    thread")) + 1;
    for (; text.compare(at, 12, "            ") == 0 && text.compare(at + 12, 3, "all") != 0;
         at = text.find('\n', at) + 1, ++lines)
      sum += std::stoull(text.substr(at + 12 + 9));
    EXPECT_EQ(sum, uint64_t{threads} * (threads - 1) / 2);
    EXPECT_LE(lines, 8u);
    data.entities.release();
  }
}

void add_entities(ReportData* data, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    EntityLine line;
    line.thread = i;
    line.members = 1;
    ASSERT_TRUE(data->entities.push(line));
  }
}

TEST(OmpReport, SaysSoWhenThereWasNoRegion) {
  const std::string text = text_of(ReportData{});
  EXPECT_THAT(text, HasSubstr("no parallel region"));
  EXPECT_THAT(text, Not(HasSubstr("worker      where")));
}

TEST(OmpReport, StaysBelowSixtyLinesAndLosesNobody) {
  for (const uint32_t workers : {1u, 24u, 25u, 64u, 1000u}) {
    ReportData data;
    data.pools = 3;
    for (LevelLine& level : data.levels) level = {1, workers, workers, workers};
    for (uint32_t i = 0; i < workers; ++i) add_worker(&data, i, 1);
    add_entities(&data, workers);
    const std::string text = text_of(data);
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60) << workers;
    // The table's first column of counts adds up.
    uint64_t sum = 0;
    const size_t table = text.find("members     worker");
    ASSERT_NE(table, std::string::npos);
    size_t at = text.find('\n', table) + 1;
    while (text.compare(at, 12, "            ") == 0 &&
           text.find("threads of the program", at) > text.find('\n', at)) {
      sum += std::stoull(text.substr(at + 12 + 11 + 1 + 25));
      at = text.find('\n', at) + 1;
    }
    EXPECT_EQ(sum, workers);
    data.workers.release();
    data.entities.release();
  }
}

TEST(OmpReport, ShowsAnInventedMachine) {
  const topology::MachinePtr machine = invented("node:4 core:4 pu:1");
  if (machine == nullptr) GTEST_SKIP() << "no hwloc here";
  ReportData data;
  data.machine = machine.get();
  data.process_cpus = 2;
  const std::string text = text_of(data);
  EXPECT_THAT(text, HasSubstr("16 cores"));
  EXPECT_THAT(text, HasSubstr("4 NUMA nodes"));
  EXPECT_THAT(text, HasSubstr("16 PUs"));
}

TEST(OmpReport, TellsHowFarThingsWereTaken) {
  const topology::MachinePtr machine = invented("node:4 core:4 pu:1");
  if (machine == nullptr) GTEST_SKIP() << "no hwloc here";
  ReportData data;
  data.machine = machine.get();
  EXPECT_THAT(text_of(data), Not(HasSubstr("levels up")));
  // Of the domains of a PU: the machine, its node, itself.
  ASSERT_EQ(machine->pu(0).depth, 2);
  data.ghost_distances.within[0] = 1;
  data.ghost_distances.within[1] = 3;
  data.ghost_distances.levels = 1 * 2 + 3 * 1;
  data.entities_made.distances.within[0] = 5;
  data.entities_made.distances.levels = 10;
  std::string text = text_of(data);
  EXPECT_THAT(text, ContainsRegex("\n +ghosts: 3 within a (node|package), 1 within a machine; "
                                  "1.2 levels up on average\n"));
  EXPECT_THAT(text, Not(HasSubstr("taken")));
  data.has_entities = true;
  EXPECT_THAT(text_of(data), HasSubstr("taken       threads and bubbles by idle PUs: 5 within a "
                                       "machine; 2.0 levels up on average\n"));
}

TEST(OmpReport, AddsUpMembersByDomainWhereTeamsArePlaced) {
  const topology::MachinePtr machine = invented("node:4 core:2 pu:1");
  if (machine == nullptr) GTEST_SKIP() << "no hwloc here";
  ReportData data;
  data.machine = machine.get();
  data.pools = 1;
  data.levels[0] = {1, 10, 10, 10};
  data.levels[1] = {1, 40, 40, 40};
  // Workers 8 and 9 go round to PUs 0 and 1; those of node 2 have not been made.
  for (const uint32_t worker : {0u, 1u, 2u, 3u, 6u, 7u, 8u, 9u})
    add_worker(&data, worker, 1, worker);
  EXPECT_THAT(text_of(data), Not(HasSubstr("placed")));
  data.policy = "burst:node";
  const std::string text = text_of(data);
  EXPECT_THAT(text, ContainsRegex("\nplaced +by burst:node,"));
  EXPECT_THAT(text, ContainsRegex("\nmembers +node +workers +level 1 +level 2\n"
                                  " +0 +4 of them +4 +18\n"
                                  " +1 +2-3 +2 +5\n"
                                  " +2 +none +0 +0\n"
                                  " +3 +6-7 +2 +13\n"));
  data.level = machine->level(topology::Kind::kCore);
  EXPECT_THAT(text_of(data), ContainsRegex("\nmembers +core +workers +level 1 +level 2\n"
                                           " +0 +2 of them +2 +8\n"
                                           " +1 +2 of them +2 +10\n"
                                           " +2 +2 +1 +2\n"));
  data.workers.release();
}

TEST(OmpReport, StaysBelowSixtyLinesOnLargeMachines) {
  const topology::MachinePtr machine = invented("node:64 core:8 pu:2");
  if (machine == nullptr) GTEST_SKIP() << "no hwloc here";
  ReportData data;
  data.machine = machine.get();
  data.policy = "spread";
  data.pools = 3;
  for (LevelLine& level : data.levels) level = {1, 1000, 1000, 1000};
  for (uint32_t i = 0; i < 1000; ++i) add_worker(&data, i, 1);
  add_entities(&data, 1000);
  const std::string text = text_of(data);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
  EXPECT_THAT(text, ContainsRegex("\n +0-5 +0-95 +96 "));
  EXPECT_THAT(text, ContainsRegex("\n +60-63 +960-999 +40 "));
  data.workers.release();
  data.entities.release();
}

TEST(OmpReport, OffUnlessAskedFor) { EXPECT_FALSE(watching() || counting()); }

}  // namespace
}  // namespace bosk::omp
