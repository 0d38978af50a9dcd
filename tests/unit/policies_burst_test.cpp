// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// burst: bubbles go down to the bursting level on the finder's way and open there.
#include "policies/burst/burst.h"

#include <gtest/gtest.h>

#include <set>

#include "policy_harness.h"

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

using namespace bosk;
using namespace bosk::test;
using policies::TeamPlacement;
using policies::TeamShape;

std::uint32_t domain_at(const Machine& machine, std::uint32_t pu, Kind kind) {
  return machine.domain_of_pu(pu, kind)->id;
}

TEST(Burst, ABubbleGoesToTheFindersNodeAndItsThreadsStayThere) {
  World world(symmetric(4, 1, 2, 2), "burst");
  Tree tree = Tree::groups(1, 6);
  world.engine().wake(tree.bubbles[0], 0);
  const sched::Found first = world.engine().next(9);
  ASSERT_EQ(first.entity, &tree.threads[0]);
  const std::uint32_t node = domain_at(world.machine(), 9, Kind::kNode);
  EXPECT_EQ(first.queue->domain, node);
  EXPECT_FALSE(world.engine().next(0));  // another node's PU finds nothing
  // The others come in the order in which they were inserted.
  for (std::size_t i = 1; i < tree.threads.size(); ++i)
    EXPECT_EQ(world.engine().next(8 + i % 4).entity, &tree.threads[i]);
  EXPECT_GE(world.announced(node), 6u);
}

TEST(Burst, EachBubbleBelongsToWhoeverIsIdleFirst) {
  World world(symmetric(4, 1, 2, 2), "burst:node");
  std::deque<Tree> trees;
  for (int i = 0; i < 4; ++i) {
    trees.push_back(Tree::groups(1, 4));
    world.engine().wake(trees.back().bubbles[0], 0);
  }
  for (std::uint32_t node = 0; node < 4; ++node) {
    const sched::Found found = world.engine().next(node * 4 + 1);
    EXPECT_EQ(found.entity, &trees[node].threads[0]);
  }
}

TEST(Burst, TheLevelMayBeNamedAsArgumentOrByWhereItActs) {
  for (const char* plan : {"burst:core", "burst@core", "burst:core@node", "burst:core@machine"}) {
    World world(symmetric(2, 2, 2, 2), plan);
    Tree tree = Tree::groups(1, 3);
    world.engine().wake(tree.bubbles[0], 0);
    const sched::Found found = world.engine().next(5);
    ASSERT_TRUE(found) << plan;
    EXPECT_EQ(found.queue->domain, domain_at(world.machine(), 5, Kind::kCore)) << plan;
  }
}

TEST(Burst, AtTheMachineLevelItIsOneSharedQueue) {
  World world(symmetric(2, 2, 2, 2), "burst:machine");
  Tree tree = Tree::groups(2, 8);
  world.engine().wake(tree.bubbles[0], 0);
  for (const Finding& f : run_all(world, tree, 1)) EXPECT_EQ(f.domain, 0u);
}

TEST(Burst, BubblesBelowTheirThreadsPriorityAreGangs) {
  // 2005, figure 1: a bubble bursts only when the threads of the ones before it do not occupy all.
  World world(symmetric(1, 1, 2, 1), "burst:machine");
  Tree tree = Tree::groups(3, 2);
  for (auto& thread : tree.threads) thread.priority = 1;
  world.engine().wake(tree.bubbles[0], 0);
  for (std::size_t pair = 0; pair < 3; ++pair) {
    EXPECT_EQ(world.engine().next(0).entity, &tree.threads[2 * pair]);
    for (std::size_t later = pair + 1; later < 3; ++later)
      EXPECT_EQ(tree.bubbles[1 + later].state, sched::BubbleState::kClosed);
    EXPECT_EQ(world.engine().next(1).entity, &tree.threads[2 * pair + 1]);
  }
}

TEST(Burst, GhostsAreServedAtTheBurstingLevel) {
  World world(symmetric(4, 1, 2, 2), "burst");
  sched::Bubble team;
  team.ghosts.open(3, 0);
  sched::NestedBubble bubble;
  bubble.team = &team;
  sched::TreeEntity thread;
  sched::insert(bubble, thread);
  world.engine().wake(bubble, 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(world.engine().next(4).ghosts, &team);
    EXPECT_TRUE(team.ghosts.claim(1));
  }
  EXPECT_FALSE(world.engine().next(0));
  EXPECT_EQ(world.engine().next(7).entity, &thread);
  EXPECT_FALSE(world.engine().next(4));
}

TEST(Burst, ATeamIsAtHomeOnTheSmallestDomainThatHasAPuForEach) {
  World world(symmetric(4, 2, 2, 2), "burst:core");  // 8 PUs a node, 4 a cache, 2 a core
  const Machine& m = world.machine();
  const struct {
    std::uint32_t members;
    Kind kind;
  } cases[] = {{1, Kind::kCore}, {2, Kind::kCore}, {3, Kind::kL3},      {4, Kind::kL3},
               {5, Kind::kNode}, {8, Kind::kNode}, {9, Kind::kMachine}, {1000, Kind::kMachine}};
  for (const auto& c : cases) {
    TeamPlacement placement;
    world.engine().place_team({.members = c.members, .opener_domain = 0, .opener_pu = 13},
                              &placement);
    const std::uint32_t home = c.kind == Kind::kMachine ? 0 : domain_at(m, 13, c.kind);
    EXPECT_EQ(placement.domain_of(0), home) << c.members;
    EXPECT_EQ(placement.domain_of(c.members - 1), home) << c.members;
    // And never outside the home of the opener.
    const std::uint32_t node = domain_at(m, 13, Kind::kNode);
    world.engine().place_team({.members = c.members, .opener_domain = node, .opener_pu = 13},
                              &placement);
    EXPECT_TRUE(is_below(m, placement.domain_of(0), node));
  }
}

void check_conservation(std::uint32_t seed, const char* level, std::uint32_t bubbles,
                        std::uint32_t threads) {
  MachinePtr machine = any_machine(seed);
  const topology::Level* bursting = machine->find_level(level, nullptr);
  if (bursting == nullptr) return;
  World world(std::move(machine), (std::string("burst:") + level).c_str());
  const Machine& m = world.machine();
  Tree tree(seed, bubbles, threads);
  world.engine().wake(tree.bubbles[0], 0);
  const std::vector<Finding> findings = run_all(world, tree, seed + 1);
  expect_all_once(world, tree, findings);
  std::set<std::uint32_t> domains;
  for (const Finding& f : findings) {
    EXPECT_TRUE(policies::at_or_below(m, *bursting, m.domain_array[f.domain]));
    domains.insert(f.domain);
  }
  // The outermost bubble is one bubble: all that was in it stays on one domain.
  EXPECT_LE(domains.size(), 1u);
  for (const auto& bubble : tree.bubbles) EXPECT_EQ(bubble.holder, nullptr);
}

TEST(Burst, ConservesEntitiesOnAnyMachine) {
  const char* const levels[] = {"machine", "node", "l3", "core", "pu"};
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    check_conservation(seed, levels[seed % 5], 1 + seed % 12, seed % 40);
  }
}

#ifdef BOSK_HAVE_RAPIDCHECK
RC_GTEST_PROP(BurstProperty, ConservesEntitiesOnAnyMachine, ()) {
  const auto seed = *rc::gen::inRange<std::uint32_t>(0, 1u << 20);
  const auto bubbles = *rc::gen::inRange<std::uint32_t>(1, 30);
  const auto threads = *rc::gen::inRange<std::uint32_t>(0, 60);
  const std::string level = *rc::gen::element<std::string>("machine", "node", "l3", "core", "pu");
  check_conservation(seed, level.c_str(), bubbles, threads);
  RC_ASSERT(!testing::Test::HasFailure());
}
#endif

}  // namespace
