// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bubble that has chosen a policy is decided about by that, and so is what is in it.
#include "policy_harness.h"

namespace bosk::test {
namespace {

using policies::PlannedPolicy;
using policies::PolicyEngine;

PlannedPolicy named(const World& world, const char* text) {
  policies::PolicyPlan plan;
  topology::Error error;
  EXPECT_TRUE(policies::make_plan(text, world.machine(), &plan, &error)) << error.text;
  return plan.policy[0];
}

std::uint8_t choose(World& world, const char* text) {
  topology::Error error;
  const std::uint8_t number = world.engine().choose(named(world, text), &error);
  EXPECT_NE(number, 0) << error.text;
  return number;
}

/// Is the load of the tree on all PUs alike?
bool is_spread(World& world) {
  for (std::uint32_t pu = 0; pu < world.machine().n_pus; ++pu)
    if (world.engine().booked(world.machine().pu(pu).id) == 0) return false;
  return true;
}

TEST(ChosenPolicy, DecidesAboutItsBubbleAndNotAboutOthers) {
  World world(symmetric(4, 1, 2, 2), "null");
  Tree plain = Tree::groups(4, 4);
  world.engine().wake(plain.bubbles[0], 0);
  EXPECT_TRUE(world.engine().next(0));
  EXPECT_FALSE(is_spread(world)) << "null spreads";

  World other(symmetric(4, 1, 2, 2), "null");
  Tree chosen = Tree::groups(4, 4);
  chosen.bubbles[0].policy = choose(other, "spread");
  other.engine().wake(chosen.bubbles[0], 0);
  EXPECT_TRUE(other.engine().next(0));
  EXPECT_TRUE(is_spread(other));
}

TEST(ChosenPolicy, TheInnermostChoiceCounts) {
  World world(symmetric(4, 1, 2, 2), "null");
  Tree tree = Tree::groups(4, 4);
  tree.bubbles[0].policy = choose(world, "spread");
  const std::uint8_t null = choose(world, "null");
  for (std::size_t i = 1; i < tree.bubbles.size(); ++i) tree.bubbles[i].policy = null;
  tree.bubbles[0].policy = null;
  world.engine().wake(tree.bubbles[0], 0);
  EXPECT_TRUE(world.engine().next(0));
  EXPECT_FALSE(is_spread(world));
}

TEST(ChosenPolicy, TheSamePolicyHasOneNumberAndThereAreSoMany) {
  World world(symmetric(2, 1, 2, 1), "spread");
  const std::uint8_t first = choose(world, "spread:50");
  EXPECT_EQ(choose(world, "spread:50"), first);
  EXPECT_NE(choose(world, "spread:60"), first);
  EXPECT_NE(choose(world, "burst"), first);
  topology::Error error;
  std::uint32_t made = 3;
  for (std::uint32_t percent = 100; percent < 200; ++percent)
    if (world.engine().choose(named(world, ("spread:" + std::to_string(percent)).c_str()), &error))
      ++made;
  EXPECT_EQ(made, PolicyEngine::kMostChosen);
  EXPECT_STREQ(error.text, "16 policies have been chosen for bubbles already");
  EXPECT_EQ(choose(world, "spread:50"), first) << "what is chosen already can still be had";
}

}  // namespace
}  // namespace bosk::test
