// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// steal, explode and null: where bubbles open, and what idle PUs come for.
#include "policies/steal/steal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "policy_simulation.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using testing::HasSubstr;

/// Bubbles that nobody holds are on queues; those of the tree that are on the queues of a domain.
std::vector<sched::Entity*> queued(World& world, std::uint32_t domain) {
  std::vector<sched::Entity*> found;
  for (sched::Entity* at = world.queue(domain).first; at != nullptr; at = at->next)
    found.push_back(at);
  return found;
}

TEST(Steal, ABubbleOpensOnTheFindersPuAndItsBubblesStayWhole) {
  World world(symmetric(2, 1, 2, 1), "steal");
  const Machine& m = world.machine();
  Tree tree = Tree::groups(3, 4);
  world.engine().wake(tree.bubbles[0], 0);
  EXPECT_EQ(world.engine().next(1).entity, &tree.threads[0]);
  const auto mine = queued(world, m.pu(1).id);
  EXPECT_EQ(mine.size(), 2u + 3u);  // two bubbles and what is left of the first
  EXPECT_EQ(tree.bubbles[2].state, sched::BubbleState::kClosed);
  for (const std::uint32_t other : {0u, 2u, 3u}) EXPECT_FALSE(world.engine().next(other));
}

TEST(Steal, AnIdlePuTakesAWholeBubbleAndThenAThread) {
  World world(symmetric(2, 1, 2, 1), "steal");
  Tree tree = Tree::groups(2, 4);
  world.engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(world.engine().next(1).entity, &tree.threads[0]);
  // The neighbour comes and takes the second bubble, which opens there.
  ASSERT_TRUE(world.engine().idle(0));
  EXPECT_EQ(world.engine().next(0).entity, &tree.threads[4]);
  // Two from the other node: no whole bubble is left.
  ASSERT_TRUE(world.engine().idle(2));
  const sched::Found far = world.engine().next(2);
  ASSERT_TRUE(far);
  EXPECT_EQ(world.engine().steals(), 2u);
  EXPECT_EQ(world.engine().steal_levels(), 1u + 2u);
  const Machine& m = world.machine();
  EXPECT_EQ(world.engine().steals_within(m.pu(0).depth - 1u), 1u);
  EXPECT_EQ(world.engine().steals_within(m.pu(0).depth - 2u), 1u);
  // The fourth finds its neighbour's queue empty, and nothing on its way; it takes from the far node, too.
  ASSERT_TRUE(world.engine().idle(3));
  EXPECT_TRUE(world.engine().next(3));
}

TEST(Steal, NothingIsTakenOutOfABubbleThatIsHeld) {
  World world(symmetric(2, 1, 2, 1), "steal");
  const Machine& m = world.machine();
  Tree tree = Tree::groups(2, 4);
  tree.bubbles[0].affinity =
      static_cast<std::uint8_t>(m.level(topology::Kind::kNode) - m.level_array + 1);
  world.engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(world.engine().next(1).entity, &tree.threads[0]);
  EXPECT_FALSE(world.engine().idle(2));
  EXPECT_FALSE(world.engine().next(3));
  // Its node's other PU takes from it as ever.
  ASSERT_TRUE(world.engine().idle(0));
  EXPECT_EQ(world.engine().next(0).entity, &tree.threads[4]);
}

bool nobody_attends(void*, const topology::Domain&) { return false; }
bool attends(void* domain, const topology::Domain& asked) {
  return asked.id == *static_cast<uint32_t*>(domain);
}

TEST(Rescue, WhatIsQueuedElsewhereComesOutAroundBoth) {
  World world(symmetric(2, 1, 2, 1), "null");
  const Machine& m = world.machine();
  sched::TreeEntity thread;
  world.engine().wake(thread, m.pu(0).id);
  EXPECT_FALSE(world.engine().rescue(0, nobody_attends, nullptr));  // it finds that by itself
  std::uint32_t attended = m.pu(0).id;
  EXPECT_FALSE(world.engine().rescue(1, attends, &attended));
  ASSERT_TRUE(world.engine().rescue(1, nobody_attends, nullptr));
  EXPECT_EQ(queued(world, m.pu(0).id).size(), 0u);
  EXPECT_EQ(
      queued(world, m.pu(0).parent->parent->id).size() + queued(world, m.pu(0).parent->id).size(),
      1u);
  EXPECT_EQ(world.engine().next(1).entity, &thread);
  EXPECT_FALSE(world.engine().rescue(1, nobody_attends, nullptr));
}

TEST(Rescue, ABubbleOpensWhereItIsBrought) {
  World world(symmetric(2, 1, 2, 1), "spread");
  const Machine& m = world.machine();
  Tree tree = Tree::groups(1, 2);
  world.engine().wake(tree.bubbles[0], m.pu(3).id);
  ASSERT_TRUE(world.engine().rescue(0, nobody_attends, nullptr));
  EXPECT_EQ(queued(world, m.pu(0).id).size(), 1u);
  EXPECT_EQ(tree.bubbles[0].state, sched::BubbleState::kClosed);
  const sched::Found first = world.engine().next(0);
  ASSERT_TRUE(first);
  const sched::Found second = world.engine().next(0);
  ASSERT_TRUE(second);
  EXPECT_EQ(static_cast<sched::TreeEntity*>(second.entity)->bubble, &tree.bubbles[1]);
  EXPECT_FALSE(world.engine().next(3));
}

TEST(Rescue, OfABubbleThatHasBurstElsewhereAMemberComes) {
  World world(symmetric(2, 1, 2, 1), "null");
  const Machine& m = world.machine();
  Tree tree = Tree::groups(1, 3);
  world.engine().wake(tree.bubbles[0], m.pu(3).id);
  ASSERT_TRUE(world.engine().next(3));
  ASSERT_FALSE(world.engine().next(0));
  ASSERT_TRUE(world.engine().rescue(0, nobody_attends, nullptr));
  const sched::Found found = world.engine().next(0);
  ASSERT_TRUE(found);
  EXPECT_EQ(static_cast<sched::TreeEntity*>(found.entity)->bubble, &tree.bubbles[1]);
}

TEST(Steal, TheNearestVictimComesFirst) {
  World world(symmetric(4, 2, 2, 1), "steal");
  const Machine& m = world.machine();
  // A thread on every PU's queue but that of number 6.
  std::vector<sched::TreeEntity> threads(m.n_pus);
  for (std::uint32_t pu = 0; pu < m.n_pus; ++pu)
    if (pu != 6) world.engine().wake(threads[pu], m.pu(pu).id);
  std::vector<std::uint32_t> order;
  while (world.engine().idle(6)) {
    const sched::Found found = world.engine().next(6);
    ASSERT_TRUE(found);
    order.push_back(
        static_cast<std::uint32_t>(static_cast<sched::TreeEntity*>(found.entity) - &threads[0]));
  }
  ASSERT_EQ(order.size(), m.n_pus - 1);
  EXPECT_EQ(order[0], 7u);  // under the same cache
  EXPECT_EQ(std::set(order.begin() + 1, order.begin() + 3), (std::set{4u, 5u}));  // the same node
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto far = [&](std::uint32_t pu) {
      return m.pu(6).depth - m.common_ancestor(m.pu(6), m.pu(pu)).depth;
    };
    return far(a) < far(b);
  }));
}

TEST(Steal, ABubbleWithTooLittleWorkIsPassedOver) {
  for (const auto& [policy, taken] : {std::pair{"steal:3", 1}, {"steal:2", 0}}) {
    World world(symmetric(2, 1, 2, 1), policy);
    const Machine& m = world.machine();
    Simulation simulation(world, 100);
    sched::NestedBubble* bubbles[] = {&simulation.team(nullptr, 2, 10),
                                      &simulation.team(nullptr, 3, 10)};
    for (sched::NestedBubble* bubble : bubbles) world.engine().wake(*bubble, m.pu(0).id);
    ASSERT_TRUE(world.engine().idle(1));
    EXPECT_EQ(queued(world, m.pu(1).id), (std::vector<sched::Entity*>{bubbles[taken]})) << policy;
    // What was told counts, not the number of threads.
    bubbles[1 - taken]->figures.load = taken == 1 ? 9 : 1;
    ASSERT_TRUE(world.engine().idle(2));
    EXPECT_EQ(queued(world, m.pu(2).id).size(), 1u);
    simulation.run();
  }
}

TEST(Steal, TakesNothingThatIsOutOfItsPolicysDomain) {
  World world(symmetric(2, 1, 2, 1), "burst@machine,steal@node");
  const Machine& m = world.machine();
  std::deque<sched::TreeEntity> threads(2);
  world.engine().wake(threads[0], m.pu(0).id);
  EXPECT_FALSE(world.engine().idle(2));  // the other node
  EXPECT_TRUE(world.engine().idle(1));
  world.engine().next(1);
}

TEST(Steal, KeepsAllPusBusyAndMovesWholeBubbles) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    World world(any_machine(seed), "steal");
    const std::uint32_t pus = world.machine().n_pus;
    std::mt19937 random(seed);
    Simulation simulation(world, 1000);
    simulation.bubble(nullptr);
    for (std::uint32_t i = 1; i < 60; ++i) simulation.bubble(&simulation.bubbles()[random() % i]);
    for (std::uint32_t i = 0; i < 4 * pus; ++i)
      simulation.thread(simulation.bubbles()[random() % 60], 1 + random() % 200);
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
  }
}

TEST(Steal, FewStealsMoveATreeOfBubbles) {
  World world(symmetric(4, 2, 2, 1), "steal");
  Simulation simulation(world, 100'000);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  for (int i = 0; i < 64; ++i) simulation.team(&root, 16, 10);
  world.engine().wake(root, 0);
  EXPECT_LE(simulation.run(), 64 * 16 * 10 / 16 * 5 / 4);
  EXPECT_LE(world.engine().steals(), 64u + 64u);  // of 1,024 threads
}

TEST(Steal, ATeamIsAtHomeWithItsOpenerAndAnybodyMayTakeIt) {
  World world(symmetric(2, 1, 2, 2), "steal");
  policies::TeamPlacement team;
  world.engine().place_team({.members = 6, .opener_domain = 0, .opener_pu = 5}, &team);
  EXPECT_FALSE(team.is_together());
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(team.domain_of(i), world.machine().pu(5).id);
}

TEST(Steal, RefusesWhatIsNoAmountOfWork) {
  const MachinePtr machine = symmetric(1, 1, 2, 1);
  for (const char* text : {"steal:0", "steal:all", "steal:1000001"}) {
    policies::PolicyPlan plan;
    topology::Error error;
    EXPECT_FALSE(policies::make_plan(text, *machine, &plan, &error)) << text;
    EXPECT_THAT(error.text, HasSubstr("worth stealing")) << text;
  }
}

TEST(Explode, AllBubblesBurstAtOnceAndLeavesAreSpread) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    World world(any_machine(seed), "explode");
    const Machine& m = world.machine();
    if (m.n_pus == 1) continue;
    Simulation simulation(world, 1000);
    std::mt19937 random(seed);
    simulation.bubble(nullptr);
    for (std::uint32_t i = 1; i < 30; ++i) simulation.bubble(&simulation.bubbles()[random() % i]);
    for (std::uint32_t i = 0; i < 2 * m.n_pus; ++i)
      simulation.thread(simulation.bubbles()[random() % 30], 10);
    world.engine().wake(simulation.bubbles()[0], 0);
    const sched::Found first = world.engine().next(0);
    for (sched::NestedBubble& bubble : simulation.bubbles())
      if (sched::summarize(bubble).threads > 1) {
        EXPECT_EQ(bubble.state, sched::BubbleState::kBurst);
      }
    // Each PU has two, but where the machine is lopsided and parts are rounded.
    std::uint32_t least = UINT32_MAX;
    std::uint32_t most = 0;
    for (std::uint32_t pu = 0; pu < m.n_pus; ++pu) {
      const auto booked =
          static_cast<std::uint32_t>(world.engine().booked(m.pu(pu).id) / policies::kLoadUnit);
      least = std::min(least, booked);
      most = std::max(most, booked);
    }
    EXPECT_GE(least, 1u);
    EXPECT_LE(most, 4u);
    if (first) sched::requeue(*static_cast<sched::TreeEntity*>(first.entity), *first.queue);
    simulation.run();
  }
}

TEST(Explode, ATeamIsSpreadOverTheMachineWhoeverOpensIt) {
  World world(symmetric(4, 1, 2, 1), "explode");
  const Machine& m = world.machine();
  policies::TeamPlacement team;
  world.engine().place_team({.members = 4, .opener_domain = m.pu(5).id, .opener_pu = 5}, &team);
  std::set<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < 4; ++i) nodes.insert(team.domain_of(i));
  EXPECT_EQ(nodes.size(), 4u);
}

TEST(Null, EverythingIsOnTheMachinesQueue) {
  World world(symmetric(2, 1, 2, 2), "null");
  Tree tree(5, 20, 100);
  world.engine().wake(tree.bubbles[0], 0);
  const std::vector<Finding> findings = run_all(world, tree, 3);
  expect_all_once(world, tree, findings);
  for (const Finding& f : findings) EXPECT_EQ(f.domain, 0u);
  policies::TeamPlacement team;
  world.engine().place_team({.members = 4, .opener_domain = 3, .opener_pu = 5}, &team);
  EXPECT_TRUE(team.is_together());
  EXPECT_EQ(team.scope(), 0u);
}

TEST(Null, TakesNoArgument) {
  const MachinePtr machine = symmetric(1, 1, 2, 1);
  policies::PolicyPlan plan;
  for (const char* name : {"null", "explode"}) {
    topology::Error error;
    EXPECT_FALSE(policies::make_plan((std::string(name) + ":3").c_str(), *machine, &plan, &error));
    EXPECT_THAT(error.text, HasSubstr("takes no argument"));
  }
}

}  // namespace
