// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads of members: how they are given, what follows for homes, order and sizes of teams.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/load_setting.h"
#include "base/settings.h"
#include "in_child.h"
#include "omp/environment.h"
#include "omp/load_meter.h"
#include "omp/loads.h"
#include "omp/placing.h"
#include "omp/team.h"
#include "sched/worker.h"

namespace bosk::omp {
namespace {

using testing::in_child;

// ---- BOSK_LOAD

TEST(LoadList, LevelsAndThreads) {
  base::LoadList list;
  ASSERT_TRUE(base::parse_load_list("1:0=25,1-3=10;2:*=1", &list));
  ASSERT_EQ(list.count, 3u);
  EXPECT_EQ(list.load_of(1, 0), 25u);
  EXPECT_EQ(list.load_of(1, 1), 10u);
  EXPECT_EQ(list.load_of(1, 3), 10u);
  EXPECT_EQ(list.load_of(1, 4), UINT32_MAX);
  EXPECT_EQ(list.load_of(2, 1'000'000), 1u);
  EXPECT_EQ(list.load_of(3, 0), UINT32_MAX);
  EXPECT_TRUE(list.mentions(2));
  EXPECT_FALSE(list.mentions(3));
}

TEST(LoadList, TheLastOneCounts) {
  base::LoadList list;
  ASSERT_TRUE(base::parse_load_list(" 1 : * = 5 , 7 = 9 ; 1:8=4294967294 ", &list));
  EXPECT_EQ(list.load_of(1, 6), 5u);
  EXPECT_EQ(list.load_of(1, 7), 9u);
  EXPECT_EQ(list.load_of(1, 8), UINT32_MAX - 1);
}

TEST(LoadList, AnythingElseChangesNothing) {
  std::string many = "1:0=1";
  for (int i = 0; i < 64; ++i) many += ",0=1";
  for (const std::string& text : {std::string(""),
                                  std::string("25"),
                                  std::string("1:"),
                                  std::string("1:0"),
                                  std::string("1:0="),
                                  std::string("1:0=0"),
                                  std::string("0:0=1"),
                                  std::string("256:0=1"),
                                  std::string("1:0=4294967295"),
                                  std::string("1:3-1=2"),
                                  std::string("1:0-=2"),
                                  std::string("1:0=1,"),
                                  std::string("1:0=1;"),
                                  std::string("1:-1=1"),
                                  std::string("1:0=-1"),
                                  std::string("1:0=1 x"),
                                  std::string("1:a=1"),
                                  std::string("1:*-3=1"),
                                  std::string("1:99999999999=1"),
                                  many}) {
    base::LoadList list{};
    list.count = 77;
    EXPECT_FALSE(base::parse_load_list(text.c_str(), &list)) << text;
    EXPECT_EQ(list.count, 77u);
  }
}

TEST(LoadList, RandomTextNeverReadsBeyondItsEnd) {
  std::mt19937 random(5);
  const std::string letters = "0123:*=-,; 9a";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (unsigned n = random() % 24; n > 0; --n) text += letters[random() % letters.size()];
    std::vector<char> exact(text.c_str(), text.c_str() + text.size() + 1);
    base::LoadList list{};
    if (base::parse_load_list(exact.data(), &list)) {
      EXPECT_GE(list.count, 1u) << text;
      for (uint32_t k = 0; k < list.count; ++k) {
        EXPECT_GE(list.clause[k].level, 1u);
        EXPECT_LE(list.clause[k].first, list.clause[k].last);
        EXPECT_GE(list.clause[k].load, 1u);
      }
    }
  }
}

TEST(LoadList, WhatIsMalformedIsSaidInOneLine) {
  const testing::ChildResult r =
      in_child({{"BOSK_LOAD", "1:zero=3"}, {"BOSK_TEAM_SIZE", "big"}}, [] {
        const base::Settings& settings = base::settings();
        return std::to_string(settings.loads.count) + (settings.team_size_by_load ? "y" : "n");
      });
  EXPECT_EQ(r.output, "0n");
  EXPECT_EQ(std::count(r.errors.begin(), r.errors.end(), '\n'), 2) << r.errors;
  EXPECT_NE(r.errors.find("BOSK_LOAD=1:zero=3 is not a list of loads"), std::string::npos);
  EXPECT_NE(r.errors.find("BOSK_TEAM_SIZE=big"), std::string::npos);
}

// ---- in regions

template <typename Body>
void region(uint32_t size, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(current_member()); }, &body, size, 0);
}

void tell(uint32_t load) { EXPECT_EQ(tell_load(current_thread(), load), LoadTold::kKept); }

std::string text_of(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (uint32_t n : numbers) text += (text.empty() ? "" : " ") + std::to_string(n);
  return text;
}

/// Numbers of the members in the order in which they start.
std::vector<uint32_t> starts(uint32_t size) {
  std::vector<uint32_t> order(size);
  std::atomic<uint32_t> next{0};
  region(size, [&](ImplicitTask* member) { order[next.fetch_add(1)] = member->index; });
  return order;
}

const testing::Variables kOneWorker = {
    {"BOSK_WORKERS", "1"}, {"BOSK_PREEMPT_PERIOD", "off"}, {"OMP_MAX_ACTIVE_LEVELS", "9"}};

TEST(Loads, GhostsStartHeaviestFirst) {
  const testing::ChildResult r = in_child(kOneWorker, [] {
    const uint32_t loads[] = {1, 3, 9, 3, 7, 9};
    region(6, [&](ImplicitTask* member) { tell(loads[member->index]); });
    std::string text = text_of(starts(6));
    // Another size is another team; the opener is member 0 whatever it has to do.
    text += ", " + text_of(starts(4));
    region(6, [&](ImplicitTask* member) {
      if (member->index == 3) tell(50);
      if (member->index == 2) tell(kNoLoad);  // the mean of 1 3 50 7 9
    });
    text += ", " + text_of(starts(6));
    region(6, [&](ImplicitTask*) { tell(4); });
    return text + ", " + text_of(starts(6));
  });
  EXPECT_EQ(r.status, 0) << r.errors;
  EXPECT_EQ(r.output, "0 2 5 4 1 3, 0 1 2 3, 0 3 2 5 4 1, 0 1 2 3 4 5");
}

TEST(Loads, OfNestedTeamsEachHasItsOwn) {
  const testing::ChildResult r = in_child(kOneWorker, [] {
    std::vector<std::string> orders(3);
    for (int round = 0; round < 2; ++round)
      region(3, [&](ImplicitTask* outer) {
        const uint32_t heavy = outer->index + 1;
        std::vector<uint32_t> order(5);
        std::atomic<uint32_t> next{0};
        region(5, [&](ImplicitTask* inner) {
          order[next.fetch_add(1)] = inner->index;
          tell(inner->index == heavy ? 2 : 1);
        });
        orders[outer->index] = text_of(order);
      });
    return orders[0] + ", " + orders[1] + ", " + orders[2];
  });
  EXPECT_EQ(r.output, "0 1 2 3 4, 0 2 1 3 4, 0 3 1 2 4");
}

TEST(Loads, OfATeamOfOneAreItsOpeners) {
  const testing::ChildResult r = in_child(kOneWorker, [] {
    tell(9);  // outside of regions: nothing
    region(4, [&](ImplicitTask* outer) {
      const uint32_t load = outer->index + 1;
      region(1, [&](ImplicitTask*) { region(1, [&](ImplicitTask*) { tell(load); }); });
    });
    return text_of(starts(4));
  });
  EXPECT_EQ(r.output, "0 3 2 1");
}

TEST(Loads, OfTooManyMembersAreRefused) {
  const testing::ChildResult r = in_child(kOneWorker, [] {
    std::atomic<uint32_t> refused{0};
    region(kMostWithLoads + 1, [&](ImplicitTask*) {
      refused += tell_load(current_thread(), 3) == LoadTold::kNoMemory;
    });
    region(kMostWithLoads, [&](ImplicitTask* member) { tell(member->index + 1); });
    const std::vector<uint32_t> order = starts(kMostWithLoads);
    bool sorted = order[0] == 0;
    for (uint32_t i = 1; i < kMostWithLoads; ++i) sorted &= order[i] == kMostWithLoads - i;
    return std::to_string(refused.load()) + (sorted ? " sorted" : " not sorted");
  });
  EXPECT_EQ(r.output, std::to_string(kMostWithLoads + 1) + " sorted");
}

TEST(Loads, OfEverNewSizesTakeNoMoreThanTheirMemory) {
  const testing::ChildResult r = in_child(kOneWorker, [] {
    uint32_t kept = 0, refused = 0;
    // Three times what fits: sanitized members have a stack each, and a region of them takes a fifth of a second.
    for (uint32_t size = kMostWithLoads; size > kMostWithLoads - 400; --size)
      region(size, [&](ImplicitTask* member) {
        if (member->index != 0) return;
        ++(tell_load(current_thread(), 3) == LoadTold::kKept ? kept : refused);
      });
    // What was kept is still told anew.
    bool again = false;
    region(kMostWithLoads, [&](ImplicitTask* member) {
      if (member->index == 0) again = tell_load(current_thread(), 4) == LoadTold::kKept;
    });
    return std::string(kept > 100 && kept < 200 && refused > 200 && again ? "bounded" : "no: ") +
           (again ? "" : "lost ") + (kept > 100 && kept < 200 ? "" : std::to_string(kept));
  });
  EXPECT_EQ(r.output, "bounded") << r.errors;
}

std::vector<uint32_t> inner_sizes(uint32_t members, uint32_t clause) {
  std::vector<uint32_t> sizes(members);
  region(members, [&](ImplicitTask* outer) {
    uint32_t* size = &sizes[outer->index];
    region(clause, [&](ImplicitTask* inner) {
      if (inner->index == 0) *size = inner->team->size;
    });
  });
  return sizes;
}

TEST(TeamSizes, ByLoadWhereTheProgramLeavesThemOpen) {
  const testing::ChildResult r = in_child(
      {{"BOSK_WORKERS", "16"},
       {"BOSK_TEAM_SIZE", "load"},
       {"OMP_NUM_THREADS", "4,10,8"},
       {"OMP_THREAD_LIMIT", "40"}},
      [] {
        std::string text = text_of(inner_sizes(4, 0));
        region(4, [&](ImplicitTask* member) { tell(member->index == 2 ? 13 : 1); });
        text += ", " + text_of(inner_sizes(4, 0));  // 13 are due, 10 are what nthreads-var says
        text += ", " + text_of(inner_sizes(4, 6));
        return text;
      });
  EXPECT_EQ(r.output, "4 4 4 4, 1 1 10 1, 6 6 6 6") << r.errors;
}

TEST(TeamSizes, SharesOfShares) {
  const testing::ChildResult r = in_child({{"BOSK_WORKERS", "16"},
                                           {"BOSK_TEAM_SIZE", "load"},
                                           {"BOSK_LOAD", "1:0=3,1=1;2:0=2,1=1"},
                                           {"OMP_NUM_THREADS", "2,2,100"}},
                                          [] {
                                            std::vector<uint32_t> sizes(4);
                                            region(2, [&](ImplicitTask* outer) {
                                              const uint32_t at = outer->index * 2;
                                              region(2, [&](ImplicitTask* inner) {
                                                uint32_t* size = &sizes[at + inner->index];
                                                region(0, [&](ImplicitTask* leaf) {
                                                  if (leaf->index == 0) *size = leaf->team->size;
                                                });
                                              });
                                            });
                                            return text_of(sizes);
                                          });
  // 16 processors: 12 and 4, of which two thirds and one third.
  EXPECT_EQ(r.output, "8 4 3 1") << r.errors;
}

TEST(TeamSizes, AsBeforeWhereNothingIsKnown) {
  const testing::ChildResult r =
      in_child({{"BOSK_WORKERS", "16"}, {"OMP_NUM_THREADS", "4,7"}, {"BOSK_LOAD", "3:*=1"}},
               [] { return text_of(inner_sizes(4, 0)); });
  EXPECT_EQ(r.output, "7 7 7 7") << r.errors;
}

// ---- homes

const testing::Variables kFourNodes = {{"BOSK_SYNTHETIC", "node:4 core:4 pu:1"},
                                       {"BOSK_WORKERS", "16"},
                                       {"OMP_MAX_ACTIVE_LEVELS", "9"}};

/// PUs of the homes of `outer` members, each of which opens a team of two there.
std::vector<uint32_t> homes_of(uint32_t outer) {
  std::vector<uint32_t> pus(outer);
  region(outer, [&](ImplicitTask* member) {
    uint32_t* to = &pus[member->index];
    region(2, [&](ImplicitTask* inner) {
      if (inner->index != 0) return;
      const topology::Machine& machine = *current_thread()->pool->machine.load();
      *to = machine.domain_array[inner->team->home_on_machine.placement.scope()].n_pus();
    });
  });
  return pus;
}

TEST(Homes, FollowTheLoads) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    // Two members a node, a core for each; then one has a node of its own.
    std::string text = text_of(homes_of(8));
    region(8, [&](ImplicitTask* member) { tell(member->index == 5 ? 7 : 1); });
    text += ", " + text_of(homes_of(8));
    region(8, [&](ImplicitTask*) { tell(kNoLoad); });
    return text + ", " + text_of(homes_of(8));
  });
  EXPECT_EQ(r.output, "1 1 1 1 1 1 1 1, 1 1 1 1 1 4 1 1, 1 1 1 1 1 1 1 1") << r.errors;
}

TEST(Homes, FollowALoadThatIsToldInsideOfTheRegion) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    uint32_t before = 0, after = 0;
    region(8, [&](ImplicitTask* member) {
      tell(1);
      barrier();
      if (member->index != 6) return;
      for (uint32_t* to : {&before, &after}) {
        region(2, [&](ImplicitTask* inner) {
          if (inner->index != 0) return;
          const topology::Machine& machine = *current_thread()->pool->machine.load();
          *to = machine.domain_array[inner->team->home_on_machine.placement.scope()].n_pus();
        });
        tell(7);
      }
    });
    return text_of({before, after});
  });
  EXPECT_EQ(r.output, "1 4") << r.errors;
}

TEST(Homes, AHotTeamAsksNoPolicyAtAnyLevel) {
  const testing::ChildResult r = in_child(kFourNodes, [] {
    const auto nest = [] {
      region(4, [&](ImplicitTask* outer) {
        tell(outer->index + 1);
        // The opener alone runs what is inside, so that its team objects come back to the same place.
        if (outer->index != 0) return;
        region(2, [&](ImplicitTask* middle) {
          tell(middle->index + 5);
          if (middle->index == 0) region(3, [&](ImplicitTask* inner) { tell(inner->index + 1); });
        });
      });
    };
    for (int i = 0; i < 50; ++i) nest();
    const uint64_t before = placed_by().asked;
    for (int i = 0; i < 50; ++i) nest();
    const uint64_t hot = placed_by().asked - before;
    region(4, [&](ImplicitTask* outer) { tell(outer->index == 2 ? 100 : 1); });
    region(4, [&](ImplicitTask* outer) {
      if (outer->index == 0) region(2, [&](ImplicitTask*) {});
    });
    const uint64_t changed = placed_by().asked - before - hot;
    return std::string(before >= 2 ? "asked" : "never asked") + ", then " +
           (hot <= 10 ? "hot" : std::to_string(hot)) + ", then " +
           (changed >= 1 ? "asked" : "not asked");
  });
  EXPECT_EQ(r.output, "asked, then hot, then asked") << r.errors;
}

void open_recursively(int n) {
  if (n < 2) return;
  region(2, [&](ImplicitTask* me) { open_recursively(n - 1 - static_cast<int>(me->index)); });
}

/// Team objects are those of the thread that opens, whichever member it is at the moment.
TEST(Homes, MembersAtHomeInOnePlaceOpenHotTeamsInTurn) {
  testing::Variables two = kFourNodes;
  two.push_back({"BOSK_WORKERS", "2"});
  const testing::ChildResult r = in_child(two, [] {
    constexpr int kNumber = 11;  // 143 regions
    constexpr uint64_t kRegions = 20 * 143;
    for (int i = 0; i < 20; ++i) open_recursively(kNumber);
    const uint64_t before = placed_by().asked;
    for (int i = 0; i < 20; ++i) open_recursively(kNumber);
    const uint64_t asked = placed_by().asked - before;
    return before == 0            ? std::string("never asked")
           : asked < kRegions / 2 ? "hot"
                                  : "asked " + std::to_string(asked);
  });
  EXPECT_EQ(r.output, "hot") << r.errors;
}

// ---- loads that are measured

TEST(Measured, SomeRegionsAndNotTheFirst) {
  std::vector<uint32_t> metered;
  for (uint32_t n = 0; n < 50; ++n)
    if (is_metered(n)) metered.push_back(n);
  EXPECT_EQ(text_of(metered), "1 2 3 4 16 32 48");
}

TEST(Measured, LoadsChangeOnlyWhereItIsWorthIt) {
  uint32_t loads[4];
  const uint32_t none[] = {kNoLoad, kNoLoad, kNoLoad, kNoLoad};
  const uint64_t even[] = {80, 100, 100, 120}, uneven[] = {100, 100, 100, 700};
  const uint64_t nothing[] = {0, 0, 0, 0}, all_in_one[] = {0, 0, 12345678901234, 0};
  EXPECT_FALSE(loads_from_averages(nothing, none, 4, loads));
  EXPECT_FALSE(loads_from_averages(even, none, 4, loads));
  ASSERT_TRUE(loads_from_averages(uneven, none, 4, loads));
  EXPECT_EQ(text_of({loads, loads + 4}), "400 400 400 2800");
  const uint32_t near[] = {500, 300, 400, 2600};
  EXPECT_FALSE(loads_from_averages(uneven, near, 4, loads));
  ASSERT_TRUE(loads_from_averages(even, near, 4, loads));
  EXPECT_EQ(text_of({loads, loads + 4}), "800 1000 1000 1200");
  ASSERT_TRUE(loads_from_averages(all_in_one, none, 4, loads));
  EXPECT_EQ(text_of({loads, loads + 4}), "1 1 4000 1");
}

volatile uint64_t sink;
void work(uint32_t amount) {
  for (uint64_t i = 0; i < amount * 20'000u; ++i) sink = i;
}

/// Four members whose nested teams have so much to do, until they start in the order 0 1 3 2.
uint32_t regions_until_known(bool with_barriers) {
  const uint32_t amounts[] = {1, 16, 1, 6};
  const std::vector<uint32_t> expected = {0, 1, 3, 2};
  constexpr uint32_t kPatience = 5'000;
  for (uint32_t n = 1; n <= kPatience; ++n) {
    std::vector<uint32_t> order(4);
    std::atomic<uint32_t> next{0};
    region(4, [&](ImplicitTask* member) {
      const uint32_t at = member->index;
      order[next.fetch_add(1)] = at;
      region(3, [&](ImplicitTask* inner) {
        // Whoever waits spends nothing.
        if (inner->index == 1) work(amounts[at]);
        if (with_barriers) barrier();
        if (inner->index == 2) work(amounts[at]);
      });
    });
    if (order == expected) return n;
  }
  return 0;
}

TEST(Measured, TheHeavyOnesStartFirst) {
  for (const bool with_barriers : {false, true})
    for (const char* identity : {"relaxed", "strict"}) {
      testing::Variables variables = kOneWorker;
      variables.push_back({"BOSK_LEARN_LOAD", "on"});
      variables.push_back({"BOSK_IDENTITY", identity});
      const testing::ChildResult r = in_child(variables, [&] {
        const uint32_t n = regions_until_known(with_barriers);
        return std::string(n == 0 ? "never" : n <= 2 ? "too early" : "known");
      });
      EXPECT_EQ(r.output, "known") << with_barriers << identity << r.errors;
    }
}

TEST(Measured, WhatIsToldCountsInstead) {
  testing::Variables variables = kOneWorker;
  variables.push_back({"BOSK_LEARN_LOAD", "on"});
  const testing::ChildResult r = in_child(variables, [] {
    if (regions_until_known(false) == 0) return std::string("never");
    region(4, [&](ImplicitTask* member) { tell(member->index == 2 ? 9 : 1); });
    return text_of(starts(4));
  });
  EXPECT_EQ(r.output, "0 2 1 3") << r.errors;
}

TEST(Measured, OnlyWherePoliciesPlaceTeamsAndNotIfOff) {
  const auto measures = [](const testing::Variables& more) {
    testing::Variables variables = {{"BOSK_WORKERS", "8"}, {"OMP_MAX_ACTIVE_LEVELS", "9"}};
    variables.insert(variables.end(), more.begin(), more.end());
    return in_child(variables,
                    [] {
                      region(4, [](ImplicitTask*) { region(2, [](ImplicitTask*) {}); });
                      return std::string(measures_loads() ? "yes" : "no");
                    })
        .output;
  };
  EXPECT_EQ(measures({{"BOSK_SYNTHETIC", "node:4 core:2 pu:1"}}), "yes");
  EXPECT_EQ(measures({{"BOSK_SYNTHETIC", "node:1 core:8 pu:1"}}), "no");
  EXPECT_EQ(measures({{"BOSK_SYNTHETIC", "node:4 core:2 pu:1"}, {"BOSK_LEARN_LOAD", "off"}}), "no");
  EXPECT_EQ(measures({{"BOSK_SYNTHETIC", "node:1 core:8 pu:1"}, {"BOSK_LEARN_LOAD", "on"}}), "yes");
}

TEST(Measured, RegionsOfSeveralInitialThreadsAtOnce) {
  const testing::ChildResult r = in_child(
      {{"BOSK_LEARN_LOAD", "on"}, {"BOSK_WORKERS", "3"}, {"OMP_MAX_ACTIVE_LEVELS", "9"}}, [] {
        std::atomic<uint64_t> ran{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
          threads.emplace_back([&] {
            for (uint32_t round = 0; round < 100; ++round)
              region(7, [&](ImplicitTask* member) {
                const uint32_t size = 1 + (member->index + round) % 5;
                region(size, [&](ImplicitTask*) {
                  if (round % 2 == 0) barrier();
                  ran.fetch_add(1);
                });
              });
          });
        for (std::thread& thread : threads) thread.join();
        uint64_t expected = 0;
        for (uint32_t round = 0; round < 100; ++round)
          for (uint32_t i = 0; i < 7; ++i) expected += 1 + (i + round) % 5;
        return std::to_string(ran.load() == 3 * expected) + (sched::metering() ? " on" : " off");
      });
  EXPECT_EQ(r.output, "1 off") << r.errors;
}

// ---- all at once

TEST(Loads, ChangeWhileRegionsRun) {
  for (const char* identity : {"relaxed", "strict"}) {
    const testing::ChildResult r = in_child(
        {{"BOSK_SYNTHETIC", "node:4 core:2 pu:1"},
         {"BOSK_WORKERS", "8"},
         {"BOSK_IDENTITY", identity},
         {"OMP_MAX_ACTIVE_LEVELS", "9"}},
        [] {
          std::atomic<uint64_t> ran{0};
          std::atomic<uint32_t> wrong{0};
          uint64_t expected = 0;
          std::mt19937 random(11);
          for (int round = 0; round < 150; ++round) {
            const uint32_t outer = 1 + random() % 24, inner = 1 + random() % 9;
            const uint32_t salt = static_cast<uint32_t>(random());
            std::vector<std::atomic<uint8_t>> seen(outer * inner);
            region(outer, [&](ImplicitTask* member) {
              const uint32_t at = member->index;
              tell((at * salt >> 7) % 50 + 1);
              region(inner, [&](ImplicitTask* ghost) {
                tell((ghost->index * salt >> 9) % 3 == 0 ? kNoLoad : ghost->index + at + 1);
                if (seen[at * inner + ghost->index].exchange(1) != 0) wrong.fetch_add(1);
                if (round % 2 == 0) barrier();
                ran.fetch_add(1);
              });
            });
            expected += uint64_t{outer} * inner;
          }
          return std::to_string(ran.load() - expected) + " " + std::to_string(wrong.load());
        });
    EXPECT_EQ(r.output, "0 0") << identity << r.errors;
    EXPECT_EQ(r.status, 0);
  }
}

}  // namespace
}  // namespace bosk::omp
