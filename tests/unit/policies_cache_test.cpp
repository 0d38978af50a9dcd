// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache: teammates close together, where they were before; idle PUs take from the nearest.
#include "policies/cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "policies/cache/distribute.h"
#include "policy_simulation.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using testing::HasSubstr;

/// Domains on which the threads of a team are booked.
std::vector<std::uint32_t> homes(Simulation& simulation, const sched::NestedBubble& team) {
  std::vector<std::uint32_t> found;
  for (const SimThread& thread : simulation.threads())
    if (thread.bubble == &team) found.push_back(thread.booked_domain);
  return found;
}

/// Smallest domain around all of a team's homes.
const Domain& around(Simulation& simulation, const Machine& m, const sched::NestedBubble& team) {
  const Domain* all = nullptr;
  for (const std::uint32_t home : homes(simulation, team))
    all = all == nullptr ? &m.domain_array[home] : &m.common_ancestor(*all, m.domain_array[home]);
  return *all;
}

TEST(Cache, DoesWhatItsPictureShows) {
  World world(symmetric(2, 2, 2, 1), "cache");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  sched::NestedBubble& a = simulation.team(&root, 4, 10);
  sched::NestedBubble& b = simulation.team(&root, 2, 10);
  sched::NestedBubble& c = simulation.team(&root, 2, 10);
  world.engine().wake(root, 0);
  ASSERT_TRUE(world.engine().next(0));
  EXPECT_EQ(around(simulation, m, a).id, m.domain_of_pu(0, Kind::kNode)->id);
  EXPECT_EQ(around(simulation, m, b).id, m.domain_of_pu(4, Kind::kL3)->id);
  EXPECT_EQ(around(simulation, m, c).id, m.domain_of_pu(6, Kind::kL3)->id);
  // Everybody has a PU of his own.
  std::set<std::uint32_t> pus;
  for (const auto* team : {&a, &b, &c})
    for (const std::uint32_t home : homes(simulation, *team)) pus.insert(home);
  EXPECT_EQ(pus.size(), 8u);
}

TEST(Cache, ATeamThatFitsUnderOneCacheIsNotSpreadOverTheMachine) {
  for (const std::uint32_t pu : {0u, 9u, 30u}) {
    World world(symmetric(4, 2, 2, 2), "cache");
    const Machine& m = world.machine();
    Simulation simulation(world, 100);
    sched::NestedBubble& team = simulation.team(nullptr, 4, 10);
    world.engine().wake(team, 0);
    world.engine().next(pu);
    EXPECT_EQ(around(simulation, m, team).id, m.domain_of_pu(pu, Kind::kL3)->id);
  }
}

TEST(Cache, TeamsThatDoNotFitTogetherGetCachesOfTheirOwn) {
  World world(symmetric(4, 2, 2, 2), "cache");  // 8 caches of 4
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> teams;
  for (int i = 0; i < 8; ++i) teams.push_back(&simulation.team(&root, 4, 10));
  world.engine().wake(root, 0);
  world.engine().next(3);
  std::set<std::uint32_t> caches;
  for (const auto* team : teams) {
    const Domain& d = around(simulation, m, *team);
    EXPECT_TRUE(d.stands_for(Kind::kL3));
    caches.insert(d.id);
  }
  EXPECT_EQ(caches.size(), 8u);
}

TEST(Cache, TheSlackSaysHowUnevenACutMayBe) {
  // 5 + 3 threads on two nodes: to spare the bubbles, one node gets a quarter more than its share.
  for (const auto& [policy, whole] : {std::pair{"cache", true}, {"cache:0", false}}) {
    World world(symmetric(2, 1, 4, 1), policy);
    const Machine& m = world.machine();
    Simulation simulation(world, 100);
    sched::NestedBubble& root = simulation.bubble(nullptr);
    sched::NestedBubble& five = simulation.team(&root, 5, 10);
    sched::NestedBubble& three = simulation.team(&root, 3, 10);
    world.engine().wake(root, 0);
    world.engine().next(0);
    EXPECT_EQ(around(simulation, m, five).depth != 0, whole) << policy;
    EXPECT_NE(around(simulation, m, three).depth, 0) << policy;
    EXPECT_EQ(world.engine().booked(m.root().first_child[0].id) +
                  world.engine().booked(m.root().first_child[1].id),
              world.engine().booked(0));
  }
}

TEST(Cache, HeavyThreadsDoNotLeavePusEmpty) {
  World world(symmetric(1, 1, 4, 1), "cache");
  const Machine& m = world.machine();
  Simulation simulation(world, 1000);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  for (int i = 0; i < 7; ++i) {
    SimThread& thread = simulation.thread(root, i == 0 ? 100 : 10);
    thread.figures.load = i == 0 ? 10 : 1;
  }
  world.engine().wake(root, 0);
  world.engine().next(0);
  for (std::uint32_t pu = 0; pu < 4; ++pu) EXPECT_NE(world.engine().booked(m.pu(pu).id), 0u) << pu;
}

TEST(Cache, WhatIsBookedAlreadyCounts) {
  World world(symmetric(2, 1, 4, 1), "cache");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  sched::NestedBubble& first = simulation.team(nullptr, 4, 10);
  sched::NestedBubble& second = simulation.team(nullptr, 4, 10);
  world.engine().wake(first, 0);
  world.engine().next(0);
  world.engine().wake(second, 0);
  world.engine().next(0);  // the same PU asks
  world.engine().next(5);
  EXPECT_NE(around(simulation, m, first).id, around(simulation, m, second).id);
}

TEST(Cache, GoesBackToWhereItWasUnlessThatIsLoaded) {
  World world(symmetric(4, 1, 2, 2), "cache");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  sched::NestedBubble& team = simulation.team(nullptr, 4, 10);
  for (SimThread& thread : simulation.threads())
    thread.figures.last_domain = m.pu(12 - thread.number).id;  // numbers 1 … 4: node 2
  world.engine().wake(team, 0);
  world.engine().next(0);
  EXPECT_EQ(around(simulation, m, team).id, m.domain_of_pu(8, Kind::kNode)->id);
  // Each on the very PU where it was, though they were there the other way round.
  for (const SimThread& thread : simulation.threads())
    EXPECT_EQ(m.domain_array[thread.booked_domain].first_pu, 12 - thread.number);

  // Another team wants the same node, but it is full.
  sched::NestedBubble& late = simulation.team(nullptr, 4, 10);
  for (SimThread& thread : simulation.threads())
    if (thread.bubble == &late) {
      thread.figures.last_domain = m.pu(9).id;
      thread.figures.load = 4;
    }
  sched::NestedBubble& later = simulation.team(nullptr, 4, 10);
  for (SimThread& thread : simulation.threads())
    if (thread.bubble == &later) thread.figures.last_domain = m.pu(9).id;
  world.engine().wake(late, 0);
  world.engine().next(0);
  EXPECT_EQ(around(simulation, m, late).id, m.domain_of_pu(8, Kind::kNode)->id);
  world.engine().wake(later, 0);
  world.engine().next(0);
  EXPECT_NE(around(simulation, m, later).id, m.domain_of_pu(8, Kind::kNode)->id);
}

TEST(Cache, TheSameTreeIsAtTheSamePlacesAgainWhoeverAsks) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    MachinePtr machine = symmetric(4, 2, 2, 2);
    World world(std::move(machine), "cache");
    std::mt19937 random(seed);
    std::map<std::pair<bool, std::size_t>, std::uint32_t> before;
    for (int round = 0; round < 3; ++round) {
      Simulation simulation(world, 1000);
      sched::NestedBubble& root = simulation.bubble(nullptr);
      for (int i = 0; i < 10; ++i) simulation.team(&root, 1 + (seed + 3 * i) % 7, 10);
      const auto each = [&](auto&& f) {
        std::size_t i = 0;
        for (SimThread& thread : simulation.threads()) f(thread, std::pair{false, i++});
        for (sched::NestedBubble& bubble : simulation.bubbles()) f(bubble, std::pair{true, i++});
      };
      if (round != 0)
        each(
            [&](sched::TreeEntity& entity, auto key) { entity.figures.last_domain = before[key]; });
      world.engine().wake(root, 0);
      world.engine().next(random() % 32);
      std::size_t moved = 0;
      each([&](sched::TreeEntity& entity, auto key) {
        // Where it was put: of a bubble whatever the engine noted, of a thread its home.
        const std::uint32_t home =
            key.first ? entity.figures.last_domain.load() : entity.booked_domain;
        moved += round != 0 && before[key] != home;
        before[key] = home;
        world.engine().done(entity);
      });
      EXPECT_EQ(moved, 0u) << round;
      // What is still queued would outlive its memory.
      for (std::uint32_t d = 0; d < world.machine().n_domains; ++d) {
        sched::RunQueue& queue = world.queue(d);
        while (queue.first != nullptr) queue.remove_locked(queue.first);
      }
    }
  }
}

TEST(Cache, GhostsAreCutIntoRanges) {
  const MachinePtr machine = symmetric(4, 1, 2, 1);
  policies::EntityView view{};
  view.kind = sched::EntityKind::kBubble;
  view.parent = view.first_child = view.last_domain = policies::kNone;
  view.ghosts = view.pieces = view.width = 1'000'003;
  view.load = view.content = view.ghosts * policies::kLoadUnit;
  policies::cache::Scratch scratch;
  policies::PlacementList answer;
  ASSERT_TRUE(policies::cache::distribute({machine.get(), nullptr, 25}, {{&view, 1, 1}, 0, nullptr},
                                          &scratch, &answer));
  std::vector<std::uint32_t> per_domain(machine->n_domains);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < answer.size(); ++i) {
    EXPECT_NE(answer[i].ghosts, 0u);
    per_domain[answer[i].domain] += answer[i].ghosts;
    sum += answer[i].ghosts;
  }
  EXPECT_EQ(sum, view.ghosts);
  for (std::uint32_t pu = 0; pu < 8; ++pu) EXPECT_NEAR(per_domain[machine->pu(pu).id], 125'000, 10);
  EXPECT_LT(scratch.steps, 1000u);  // not one by one
  scratch.release();
  answer.release();
}

TEST(Cache, CostsWhatItSays) {
  // Steps per entity and level do not grow with the number of entities.
  double least = 1e9;
  double most = 0;
  for (const std::uint32_t teams : {100u, 1000u, 10'000u}) {
    const MachinePtr machine = symmetric(64, 2, 4, 2);
    std::vector<policies::EntityView> view(1 + teams * 5);
    view[0].first_child = 1;
    view[0].n_children = teams;
    for (std::uint32_t i = 0; i < view.size(); ++i) {
      policies::EntityView& e = view[i];
      e.kind = i <= teams ? sched::EntityKind::kBubble : sched::EntityKind::kThread;
      e.parent = i == 0 ? policies::kNone : i <= teams ? 0 : 1 + (i - 1 - teams) / 4;
      e.last_domain = policies::kNone;
      e.pieces = e.width = i == 0 ? 4 * teams : i <= teams ? 4 : 1;
      e.load = e.content = e.pieces * policies::kLoadUnit;
      if (i != 0 && i <= teams) {
        e.first_child = 1 + teams + (i - 1) * 4;
        e.n_children = 4;
      }
    }
    policies::cache::Scratch scratch;
    policies::PlacementList answer;
    ASSERT_TRUE(policies::cache::distribute(
        {machine.get(), nullptr, 25},
        {{view.data(), static_cast<std::uint32_t>(view.size()), 1}, 0, nullptr}, &scratch,
        &answer));
    const double each =
        static_cast<double>(scratch.steps) / (5.0 * teams + machine->n_domains) / 5;  // levels
    least = std::min(least, each);
    most = std::max(most, each);
    scratch.release();
    answer.release();
  }
  EXPECT_LT(most, 6);
  EXPECT_LT(most, 4 * least);
}

/// What a run of teams was like.
struct Closeness {
  double under_one_cache;  ///< share of pairs of teammates that ran at the same time
  double step;             ///< levels between where a thread ran and where it ran next
  std::uint64_t time;
};

Closeness run_teams(MachinePtr machine, const char* policy, std::uint32_t seed) {
  World world(std::move(machine), policy);
  const Machine& m = world.machine();
  std::mt19937 random(seed);
  Simulation simulation(world, 20);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> teams;
  // Irregular: teams of 2 to 5 threads, three threads a PU, work that differs by a factor of ten.
  for (std::uint32_t n = 0; n < 3 * m.n_pus;) {
    teams.push_back(&simulation.bubble(&root));
    const std::uint32_t size = 2 + random() % 4;
    for (std::uint32_t i = 0; i < size; ++i) simulation.thread(*teams.back(), 30 + random() % 270);
    n += size;
  }
  double pairs = 0;
  double together = 0;
  simulation.look = [&](std::uint64_t time) {
    std::map<const sched::NestedBubble*, std::vector<std::uint32_t>> running;
    for (std::uint32_t pu = 0; pu < m.n_pus; ++pu)
      if (simulation.on(pu) != nullptr) running[simulation.on(pu)->bubble].push_back(pu);
    for (const auto& [team, pus] : running)
      for (std::size_t a = 0; a < pus.size(); ++a)
        for (std::size_t b = a + 1; b < pus.size(); ++b) {
          pairs += static_cast<double>(time);
          if (m.domain_of_pu(pus[a], Kind::kL3) == m.domain_of_pu(pus[b], Kind::kL3))
            together += static_cast<double>(time);
        }
  };
  world.engine().wake(root, 0);
  Closeness seen{};
  seen.time = simulation.run();
  seen.under_one_cache = pairs != 0 ? together / pairs : 1;
  seen.step = static_cast<double>(simulation.moved_levels) / static_cast<double>(simulation.starts);
  return seen;
}

TEST(Cache, KeepsTeammatesCloserThanNullAndMovesLess) {
  for (const auto& [nodes, caches, cores, pus] :
       {std::array{2u, 1u, 4u, 1u}, {4u, 2u, 2u, 2u}, {8u, 2u, 4u, 2u}, {64u, 2u, 4u, 2u}}) {
    SCOPED_TRACE(nodes * caches * cores * pus);
    const Closeness null = run_teams(symmetric(nodes, caches, cores, pus), "null", nodes);
    const Closeness cache = run_teams(symmetric(nodes, caches, cores, pus), "cache", nodes);
    // Of two nodes 0.44 are together by chance; a team of five does not fit a cache of four.
    EXPECT_GE(cache.under_one_cache, 0.55);
    EXPECT_GE(cache.under_one_cache, null.under_one_cache + 0.2);
    EXPECT_LE(cache.step, 0.25 * null.step);
    EXPECT_LE(static_cast<double>(cache.time), 1.25 * static_cast<double>(null.time));
  }
}

TEST(Cache, IdlePusTakeFromTheNearest) {
  for (std::uint32_t seed = 1; seed < 6; ++seed) {
    // All threads of the machine's first half have nothing to do after a while.
    World world(symmetric(4, 2, 2, 2), "cache");
    Simulation simulation(world, 50);
    sched::NestedBubble& root = simulation.bubble(nullptr);
    std::mt19937 random(seed);
    for (int i = 0; i < 32; ++i) simulation.team(&root, 4, 10 + random() % 200);
    world.engine().wake(root, 0);
    simulation.run();
    ASSERT_GT(world.engine().steals(), 10u);
    // A victim taken by chance is 3.6 levels away on average.
    EXPECT_LT(static_cast<double>(world.engine().steal_levels()) /
                  static_cast<double>(world.engine().steals()),
              2.9);
  }
}

TEST(Cache, NoPuIdlesWhileThreadsWait) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    World world(any_machine(seed), "cache");
    const std::uint32_t pus = world.machine().n_pus;
    std::mt19937 random(seed);
    Simulation simulation(world, 50);
    simulation.bubble(nullptr);
    for (std::uint32_t i = 1; i < 40; ++i) simulation.bubble(&simulation.bubbles()[random() % i]);
    for (std::uint32_t i = 0; i < 3 * pus; ++i)
      simulation.thread(simulation.bubbles()[random() % 40], 1 + random() % 200);
    std::uint64_t idle = 0;
    simulation.look = [&](std::uint64_t time) {
      std::uint32_t busy = 0;
      std::uint32_t left = 0;
      for (std::uint32_t pu = 0; pu < pus; ++pu) busy += simulation.on(pu) != nullptr;
      for (const SimThread& thread : simulation.threads()) left += thread.work != 0;
      if (busy < std::min(left, pus)) idle += time;
    };
    world.engine().wake(simulation.bubbles()[0], 0);
    simulation.run();
    EXPECT_EQ(idle, 0u);
    for (sched::NestedBubble& bubble : simulation.bubbles()) world.engine().done(bubble);
    EXPECT_EQ(world.engine().booked(0), 0u);
  }
}

TEST(Cache, InsideOfSpreadItStaysInItsNode) {
  World world(symmetric(4, 2, 2, 1), "spread@machine,cache@node");
  const Machine& m = world.machine();
  Simulation simulation(world, 1000);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::map<const sched::NestedBubble*, std::set<std::uint32_t>> nodes;
  std::map<const sched::NestedBubble*, std::set<std::uint32_t>> caches;
  for (int i = 0; i < 8; ++i) simulation.team(&root, 2, 500);
  simulation.look = [&](std::uint64_t) {
    for (std::uint32_t pu = 0; pu < m.n_pus; ++pu) {
      if (simulation.on(pu) == nullptr) continue;
      nodes[simulation.on(pu)->bubble].insert(m.domain_of_pu(pu, Kind::kNode)->id);
      caches[simulation.on(pu)->bubble].insert(m.domain_of_pu(pu, Kind::kL3)->id);
    }
  };
  world.engine().wake(root, 0);
  EXPECT_EQ(simulation.run(), 500u);
  for (const auto& [team, where] : nodes) EXPECT_EQ(where.size(), 1u);
  for (const auto& [team, where] : caches) EXPECT_EQ(where.size(), 1u);
}

TEST(Cache, ATeamIsEvenOverTheSmallestDomainWithAPuForEach) {
  World world(symmetric(4, 2, 2, 2), "cache");
  const Machine& m = world.machine();
  policies::TeamPlacement team;
  world.engine().place_team({.members = 4, .opener_domain = 0, .opener_pu = 13}, &team);
  EXPECT_FALSE(team.is_together());
  std::set<std::uint32_t> homes;
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(is_below(m, team.domain_of(i), m.domain_of_pu(13, Kind::kL3)->id));
    homes.insert(team.domain_of(i));
  }
  EXPECT_EQ(homes.size(), 4u);
  EXPECT_TRUE(m.domain_array[team.domain_of(0)].contains_pu(13));
  // Not outside of the opener's home, though that is small.
  const std::uint32_t core = m.domain_of_pu(13, Kind::kCore)->id;
  world.engine().place_team({.members = 4, .opener_domain = core, .opener_pu = 13}, &team);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(is_below(m, team.domain_of(i), core));
  // With loads: neighbours stay neighbours, and the heavy one has a core of its own.
  const std::uint32_t loads[] = {1, 1, 6, 1, 1, 1, 1};
  world.engine().place_team({.members = 7, .loads = loads, .opener_domain = 0, .opener_pu = 0},
                            &team);
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_EQ(team.members_below(team.domain_of(2)).count, 1u);
  team.release();
}

TEST(Cache, RefusesWhatIsNoSlack) {
  const MachinePtr machine = symmetric(1, 1, 2, 1);
  for (const char* text : {"cache:101", "cache:little", "cache:-1"}) {
    policies::PolicyPlan plan;
    topology::Error error;
    EXPECT_FALSE(policies::make_plan(text, *machine, &plan, &error)) << text;
    EXPECT_THAT(error.text, HasSubstr("slack")) << text;
  }
}

}  // namespace
