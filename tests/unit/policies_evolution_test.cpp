// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How bubbles evolve under the engine (2005 §3.3): idle PUs pull, time slices end, phases redistribute;
// and what damps it.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "policy_harness.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using sched::BubbleState;
using sched::Found;
using sched::NestedBubble;
using sched::TreeEntity;

/// Two nodes of four PUs; burst opens bubbles at nodes. PUs 0 … 3 are of node 0.
class Evolution : public testing::Test {
 protected:
  explicit Evolution(const char* plan = "burst") : world_(symmetric(2, 1, 2, 2), plan) {
    world_.engine().set_clock(
        {[](void* context) { return static_cast<Evolution*>(context)->now_; }, this});
    world_.engine().set_recall({[](void* context, TreeEntity& running) {
                                  static_cast<Evolution*>(context)->recalled_.push_back(&running);
                                },
                                this});
  }
  const Domain& node(std::uint32_t i) const { return world_.machine().root().first_child[i]; }
  policies::PolicyEngine& engine() { return world_.engine(); }
  policies::EvolutionCounts counts() { return engine().evolution_counts(); }

  /// Bubbles in one bubble, of lower priority than their threads: the next one is opened only when those
  /// of the one before are all taken.
  static Tree gangs(std::uint32_t groups, std::uint32_t size) {
    Tree tree = Tree::groups(groups, size);
    for (std::uint32_t g = 1; g <= groups; ++g) tree.bubbles[g].priority = -1;
    return tree;
  }

  /// As NestedBubble::affinity has it.
  std::uint8_t level(const char* name) const {
    const Machine& m = world_.machine();
    return static_cast<std::uint8_t>(m.find_level(name, nullptr) - m.level_array + 1);
  }

  TreeEntity* run(std::uint32_t pu) {
    const Found found = engine().next(pu);
    auto* thread = static_cast<TreeEntity*>(found.entity);
    if (thread != nullptr) sched::note_running(*thread, pu, found.queue->domain);
    return thread;
  }
  /// The running thread is preempted and goes back to where it was found.
  sched::RunQueue* preempt(TreeEntity& thread) {
    return sched::requeue(thread, world_.queue(thread.figures.last_domain));
  }
  std::set<const NestedBubble*> bubbles_run_by(std::uint32_t first_pu, std::uint32_t last_pu) {
    std::set<const NestedBubble*> seen;
    for (bool any = true; any;) {
      any = false;
      for (std::uint32_t pu = first_pu; pu <= last_pu; ++pu)
        if (const TreeEntity* thread = run(pu)) {
          seen.insert(thread->bubble);
          any = true;
        }
    }
    return seen;
  }

  std::uint64_t now_ = 1'000'000;
  std::vector<TreeEntity*> recalled_;
  World world_;
};

// ---- corrective

TEST_F(Evolution, AnIdleNodePullsABubbleThatNobodyHasOpened) {
  Tree tree = gangs(3, 2);
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);  // all went down to node 0, and the first pair is open
  EXPECT_EQ(run(4), nullptr);
  EXPECT_TRUE(engine().idle(4));
  EXPECT_EQ(counts().moved, 1u);
  EXPECT_EQ(engine().steals(), 1u);
  // The second pair, whole.
  EXPECT_EQ(run(4), &tree.threads[2]);
  EXPECT_EQ(tree.bubbles[2].burst_on->domain, node(1).id);
  EXPECT_EQ(run(5), &tree.threads[3]);
  EXPECT_EQ(bubbles_run_by(0, 3),
            (std::set<const NestedBubble*>{&tree.bubbles[1], &tree.bubbles[3]}));
}

TEST_F(Evolution, AnOpenBubbleIsClosedAndBurstsAgainNearTheIdleNode) {
  Tree tree = Tree::groups(2, 3);
  engine().wake(tree.bubbles[0], 0);
  // Four PUs run the first bubble and one thread of the second.
  for (std::uint32_t pu = 0; pu < 4; ++pu) ASSERT_EQ(run(pu), &tree.threads[pu]);
  EXPECT_TRUE(recalled_.empty());
  EXPECT_FALSE(engine().idle(4));  // there is nothing to find before the fourth thread is back
  EXPECT_EQ(counts().regenerated, 1u);
  EXPECT_EQ(recalled_, std::vector<TreeEntity*>{&tree.threads[3]});
  EXPECT_EQ(tree.bubbles[2].state, BubbleState::kClosing);
  EXPECT_EQ(run(4), nullptr);
  EXPECT_EQ(preempt(tree.threads[3]), &world_.queue(0));
  EXPECT_EQ(run(4), &tree.threads[3]);  // it went in first, and comes out in the order of insertion
  EXPECT_EQ(run(5), &tree.threads[4]);
  EXPECT_EQ(run(6), &tree.threads[5]);
  EXPECT_EQ(run(3), nullptr);
}

TEST_F(Evolution, ABubbleWithStrengthOfAffinityStaysWithWhatIsInIt) {
  Tree tree = gangs(3, 2);
  tree.bubbles[0].affinity = level("node");
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);
  EXPECT_FALSE(engine().idle(4));
  EXPECT_EQ(counts().moved, 0u);
  EXPECT_EQ(run(4), nullptr);
  EXPECT_EQ(bubbles_run_by(0, 3).size(), 3u);
}

TEST_F(Evolution, OnlyTheBubbleThatHasItStays) {
  Tree tree = Tree::groups(3, 3);
  engine().wake(tree.bubbles[0], 0);
  for (std::uint32_t pu = 0; pu < 4; ++pu) ASSERT_EQ(run(pu), &tree.threads[pu]);
  tree.bubbles[2].affinity = level("node");
  EXPECT_TRUE(engine().idle(4));
  EXPECT_TRUE(recalled_.empty());
  EXPECT_EQ(tree.bubbles[2].state, BubbleState::kBurst);
  EXPECT_EQ(bubbles_run_by(4, 7), std::set<const NestedBubble*>{&tree.bubbles[3]});
}

TEST_F(Evolution, ARedistributionBringsItBack) {
  Tree tree = gangs(2, 2);
  tree.bubbles[0].affinity = level("node");
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(4), &tree.threads[0]);
  engine().redistribute(0);
  preempt(tree.threads[0]);
  ASSERT_EQ(tree.bubbles[0].state, BubbleState::kClosed);
  EXPECT_EQ(tree.bubbles[0].last_queue, &world_.queue(node(1).id));
  EXPECT_EQ(run(0), nullptr);
  EXPECT_NE(run(5), nullptr);
}

TEST_F(Evolution, AndAnotherToTheMachine) {
  Tree tree = gangs(2, 2);
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(4), &tree.threads[0]);
  engine().redistribute(0);
  preempt(tree.threads[0]);
  EXPECT_EQ(tree.bubbles[0].last_queue, &world_.queue(0));
  EXPECT_NE(run(0), nullptr);
}

TEST_F(Evolution, AHeldOneInsideOfOneThatMovesGoesAlong) {
  Tree tree = gangs(1, 2);
  tree.bubbles[1].affinity = level("node");
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);
  EXPECT_EQ(tree.bubbles[1].evolution.anchor, node(0).id);
  engine().redistribute(0);
  preempt(tree.threads[0]);
  ASSERT_EQ(run(4), &tree.threads[0]);
  EXPECT_EQ(tree.bubbles[1].evolution.anchor, node(1).id);
}

TEST_F(Evolution, OfTheMachineStrengthHoldsNothing) {
  Tree tree = gangs(3, 2);
  tree.bubbles[0].affinity = level("machine");
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);
  EXPECT_TRUE(engine().idle(4));
  EXPECT_EQ(run(4), &tree.threads[2]);
}

TEST_F(Evolution, WokenAnewItIsFreeUntilItBursts) {
  NestedBubble bubble;
  bubble.affinity = level("node");
  engine().wake(bubble, node(1).id);
  EXPECT_EQ(bubble.evolution.anchor, sched::kUnknown32);
  EXPECT_EQ(run(4), nullptr);
  EXPECT_EQ(bubble.evolution.anchor, node(1).id);
}

TEST_F(Evolution, BubblesThatNobodyMustBeFetchedForComeFirst) {
  Tree tree = Tree::groups(2, 2);
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);  // before its mate on the queue, both bubbles are open
  EXPECT_TRUE(engine().idle(4));
  EXPECT_TRUE(recalled_.empty());
  EXPECT_EQ(bubbles_run_by(4, 7), std::set<const NestedBubble*>{&tree.bubbles[2]});
}

TEST_F(Evolution, WhatRunsMoreThanItWaitsIsNotFetched) {
  Tree tree = Tree::groups(2, 3);
  engine().wake(tree.bubbles[0], 0);
  for (std::uint32_t pu = 0; pu < 4; ++pu) ASSERT_NE(run(pu), nullptr);
  sched::leave(tree.threads[0]);
  ASSERT_EQ(run(0), &tree.threads[4]);  // two run, one waits
  EXPECT_FALSE(engine().idle(4));
  EXPECT_EQ(counts().regenerated, 0u);
  EXPECT_EQ(tree.bubbles[2].state, BubbleState::kBurst);
}

TEST_F(Evolution, WithoutARecallNobodyWaitsForRunningThreads) {
  engine().set_recall({});
  Tree tree = Tree::groups(2, 3);
  engine().wake(tree.bubbles[0], 0);
  for (std::uint32_t pu = 0; pu < 4; ++pu) ASSERT_NE(run(pu), nullptr);
  EXPECT_FALSE(engine().idle(4));
  EXPECT_EQ(tree.bubbles[2].state, BubbleState::kBurst);
}

TEST_F(Evolution, ABubbleTooLargeForTheIdleSideOpensAroundBoth) {
  Tree tree = Tree::groups(1, 12);
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);
  EXPECT_TRUE(engine().idle(4));
  EXPECT_EQ(counts().widened, 1u);
  EXPECT_TRUE(recalled_.empty());
  EXPECT_EQ(tree.bubbles[1].burst_on->domain, 0u);
  EXPECT_EQ(world_.queue(0).length, 11u);
  EXPECT_EQ(run(4), &tree.threads[1]);
  EXPECT_EQ(run(1), &tree.threads[2]);
  // Preempted ones stay within reach of both.
  EXPECT_EQ(sched::requeue(tree.threads[2], world_.queue(0)), &world_.queue(0));
}

TEST_F(Evolution, WhatIsOpenInsideIsClosedAndGoesAlong) {
  NestedBubble root, outer, inner;
  std::deque<TreeEntity> threads(3);
  sched::insert(root, outer);
  sched::insert(outer, inner);
  sched::insert(inner, threads[0]);
  for (int i : {1, 2}) sched::insert(outer, threads[i]);
  threads[0].priority = 1;
  engine().wake(root, 0);
  ASSERT_EQ(run(0), &threads[0]);
  sched::note_blocked(threads[0]);
  ASSERT_EQ(inner.state, BubbleState::kBurst);
  EXPECT_TRUE(engine().idle(4));
  EXPECT_EQ(inner.state, BubbleState::kClosed);
  EXPECT_EQ(inner.holder, &outer);
  preempt(threads[0]);  // it wakes while its bubble is closed
  EXPECT_EQ(threads[0].holder, &inner);
  EXPECT_EQ(bubbles_run_by(4, 7), (std::set<const NestedBubble*>{&outer, &inner}));
  EXPECT_EQ(threads[0].figures.last_domain, node(1).id);
}

TEST_F(Evolution, NothingLeavesTheDomainWhereItWasWoken) {
  Tree tree = Tree::groups(3, 2);
  engine().wake(tree.bubbles[0], node(0).id);
  ASSERT_NE(run(0), nullptr);
  EXPECT_FALSE(engine().idle(4));
  TreeEntity alone;
  engine().wake(alone, node(0).id);
  EXPECT_FALSE(engine().idle(4));
  EXPECT_EQ(bubbles_run_by(4, 7).size(), 0u);
}

TEST_F(Evolution, GhostsThatNobodyClaimedGoAlongClaimedOnesDoNot) {
  sched::Bubble team;
  team.ghosts.open(4, 0);
  Tree tree = gangs(1, 2);
  NestedBubble& ghosts = tree.bubbles.emplace_back();
  ghosts.priority = -1;
  ghosts.team = &team;
  sched::insert(tree.bubbles[0], ghosts);
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);
  ASSERT_EQ(run(1), &tree.threads[1]);
  const Found found = engine().next(2);
  ASSERT_EQ(found.ghosts, &team);
  ASSERT_EQ(team.ghosts.claim(1).index, 0u);  // it runs; then the bubble goes elsewhere
  ASSERT_TRUE(sched::close(ghosts));
  EXPECT_EQ(ghosts.ghosts_left(), 3u);
  EXPECT_FALSE(team.ghosts.claim(1));  // a thief that still knows the team comes too late
  ASSERT_EQ(engine().next(3).ghosts, &team);
  EXPECT_EQ(ghosts.ghosts_left(), 3u);
  for (std::uint32_t i = 1; i < 4; ++i) EXPECT_EQ(team.ghosts.claim(1).index, i);
  EXPECT_FALSE(team.ghosts.claim(1));
}

TEST_F(Evolution, ABubbleOfGhostsIsPulledWithWhatIsLeftOfThem) {
  sched::Bubble team;
  team.ghosts.open(5, 0);
  Tree tree = gangs(1, 1);
  NestedBubble& ghosts = tree.bubbles.emplace_back();
  ghosts.priority = -1;
  ghosts.team = &team;
  sched::insert(tree.bubbles[0], ghosts);
  engine().wake(tree.bubbles[0], 0);
  ASSERT_NE(run(0), nullptr);
  ASSERT_EQ(engine().next(1).ghosts, &team);
  ASSERT_TRUE(team.ghosts.claim(2));
  ASSERT_TRUE(engine().idle(4));
  EXPECT_EQ(counts().regenerated, 1u);  // 3 ghosts: the idle node has PUs for them
  const Found found = engine().next(5);
  EXPECT_EQ(found.ghosts, &team);
  EXPECT_EQ(found.queue->domain, node(1).id);
  EXPECT_EQ(team.ghosts.claim(5).count, 3u);
}

TEST_F(Evolution, ABlockedThreadIsNotWaitedFor) {
  Tree tree = Tree::groups(1, 3);
  engine().wake(tree.bubbles[0], 0);
  TreeEntity* blocks = run(0);
  TreeEntity* runs = run(1);
  NestedBubble& bubble = tree.bubbles[1];
  EXPECT_EQ(sched::note_blocked(*blocks), nullptr);
  EXPECT_FALSE(sched::close(bubble));
  EXPECT_EQ(bubble.awaited, 1u);  // the one that runs
  // It blocks, too: perhaps both wait for the third, which the bubble holds.
  EXPECT_NE(sched::note_blocked(*runs), nullptr);
  EXPECT_EQ(bubble.state, BubbleState::kClosed);
  EXPECT_EQ(run(2), &tree.threads[2]);
  // Woken while the bubble is open again, they come out where their waker says.
  EXPECT_EQ(preempt(*blocks), &world_.queue(node(0).id));
  EXPECT_TRUE(sched::close(bubble) || bubble.awaited == 1);
  EXPECT_EQ(preempt(*runs), nullptr);  // and into a closed one otherwise
  EXPECT_EQ(runs->holder, &bubble);
}

// ---- what it costs to look

TEST(EvolutionCost, LookingTakesStepsByLevelsNotByTheMachine) {
  for (const std::uint32_t nodes : {2u, 4u, 16u, 64u}) {
    World world(symmetric(nodes, 2, 4, 2), "burst");
    const Machine& m = world.machine();
    Tree tree = Tree::groups(2, 2);
    for (int g : {1, 2}) tree.bubbles[g].priority = -1;
    // From one end of the machine to the other.
    world.engine().wake(tree.bubbles[0], 0);
    const Found found = world.engine().next(m.n_pus - 1);
    ASSERT_NE(found.entity, nullptr);
    sched::note_running(*static_cast<TreeEntity*>(found.entity), 0, found.queue->domain);
    std::uint32_t looked = 0;
    ASSERT_TRUE(world.engine().pull(0, &looked));
    EXPECT_LE(looked, 3u * m.n_depths) << m.n_pus;
    // Nothing is queued any more but what PU 0 can reach; old signs are met once each.
    while (world.engine().next(0).entity != nullptr) {
    }
    while (world.engine().next(m.n_pus - 1).entity != nullptr) {
    }
    EXPECT_FALSE(world.engine().pull(m.n_pus / 2));
    EXPECT_FALSE(world.engine().pull(m.n_pus / 2, &looked));
    EXPECT_LE(looked, m.n_depths);
  }
}

TEST(EvolutionCost, ATreeOfManyEntitiesIsDistributedInStepsByItsSize) {
  // 100,000 entities over 1,024 PUs. What it takes in time is for the benchmark to say.
  World world(symmetric(16, 4, 8, 2), "spread");
  Tree tree(3, 12'500, 87'500, true);
  world.engine().wake(tree.bubbles[0], 0);
  ASSERT_NE(world.engine().next(0).entity, nullptr);
  // Every PU has its share, within what the largest piece makes inevitable, in one go: a search later
  // finds only bubbles that are where they belong.
  const Machine& m = world.machine();
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  std::uint32_t pieces = 0;
  for (std::uint32_t pu = 0; pu < m.n_pus; ++pu) {
    const std::uint64_t booked = world.engine().booked(m.pu(pu).id);
    least = std::min(least, booked);
    most = std::max(most, booked);
    pieces += world.announced(m.pu(pu).id);
  }
  EXPECT_GT(least, 0u);
  EXPECT_LE(most, 2 * least);
  // Bubbles move as wholes: not every entity was put on a queue.
  EXPECT_LT(pieces, 100'000u);
  EXPECT_GE(pieces, m.n_pus);
}

// ---- preventive

TEST_F(Evolution, WhenTheTimeSliceIsOverTheBubbleGoesToTheEndAndAnotherBursts) {
  Tree tree = gangs(3, 2);
  for (int g = 1; g <= 3; ++g) tree.bubbles[g].evolution.slice_ns = 1000;
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);
  ASSERT_EQ(run(1), &tree.threads[1]);
  now_ += 999;
  EXPECT_FALSE(engine().tick_thread(tree.threads[0]));
  now_ += 1;
  EXPECT_TRUE(engine().tick_thread(tree.threads[0]));
  EXPECT_EQ(recalled_.size(), 2u);
  EXPECT_EQ(counts().slices, 1u);
  EXPECT_EQ(preempt(tree.threads[0]), nullptr);
  EXPECT_EQ(run(0), &tree.threads[2]);  // the next gang begins where a PU is free
  EXPECT_EQ(preempt(tree.threads[1]), &world_.queue(node(0).id));  // the last one closes it
  EXPECT_EQ(run(1), &tree.threads[3]);
  EXPECT_EQ(world_.queue(node(0).id).last, &tree.bubbles[1]);
  now_ += 1000;
  EXPECT_TRUE(engine().tick_thread(tree.threads[3]));
  preempt(tree.threads[2]);
  preempt(tree.threads[3]);
  EXPECT_EQ(run(0), &tree.threads[4]);
  EXPECT_EQ(run(1), &tree.threads[5]);
  now_ += 1000;
  EXPECT_TRUE(engine().tick_thread(tree.threads[4]));
  preempt(tree.threads[4]);
  preempt(tree.threads[5]);
  EXPECT_EQ(run(0), &tree.threads[0]);  // round
}

TEST_F(Evolution, ABubbleThatWouldOnlyBeFoundAgainGoesOn) {
  Tree tree = Tree::groups(1, 3);
  tree.bubbles[1].evolution.slice_ns = 1000;
  engine().wake(tree.bubbles[0], 0);
  ASSERT_EQ(run(0), &tree.threads[0]);
  now_ += 5000;
  EXPECT_FALSE(engine().tick_thread(tree.threads[0]));
  EXPECT_EQ(counts().renewed, 1u);
  EXPECT_EQ(tree.bubbles[1].state, BubbleState::kBurst);
  // Somebody else has come meanwhile; the slice began anew.
  TreeEntity other;
  engine().wake(other, 0);
  now_ += 999;
  EXPECT_FALSE(engine().tick_thread(tree.threads[0]));
  now_ += 1;
  EXPECT_TRUE(engine().tick_thread(tree.threads[0]));
}

TEST_F(Evolution, OfTwoThatAreDueTheOuterOneCloses) {
  NestedBubble root, outer, inner;
  TreeEntity thread, other;
  sched::insert(root, outer);
  sched::insert(outer, inner);
  sched::insert(inner, thread);
  sched::insert(root, other);
  outer.evolution.slice_ns = inner.evolution.slice_ns = 10;
  engine().wake(root, 0);
  ASSERT_EQ(run(0), &other);
  ASSERT_EQ(run(1), &thread);
  EXPECT_EQ(preempt(other), &world_.queue(node(0).id));
  now_ += 10;
  EXPECT_TRUE(engine().tick_thread(thread));
  EXPECT_EQ(outer.state, BubbleState::kClosing);
  EXPECT_EQ(inner.state, BubbleState::kClosing);
  EXPECT_EQ(preempt(thread), &world_.queue(node(0).id));
  EXPECT_EQ(outer.state, BubbleState::kClosed);
}

// ---- damping

TEST_F(Evolution, ABubbleThatWasPulledIsLetAloneForAWhile) {
  for (const bool damped : {true, false}) {
    SCOPED_TRACE(damped);
    engine().set_damping({.settle_ns = damped ? 1000u : 0u, .worth_ns = 0});
    const std::uint64_t before = counts().settled;
    Tree tree = gangs(2, 2);
    NestedBubble& pair = tree.bubbles[2];
    engine().wake(tree.bubbles[0], 0);
    ASSERT_NE(run(0), nullptr);
    ASSERT_TRUE(engine().idle(4));
    TreeEntity* thread = run(4);
    ASSERT_EQ(thread->bubble, &pair);
    preempt(*thread);  // both wait on node 1, and node 0 becomes idle
    sched::leave(tree.threads[0]);
    ASSERT_EQ(run(0), &tree.threads[1]);
    sched::leave(tree.threads[1]);
    ASSERT_EQ(engine().idle(1), !damped);
    EXPECT_EQ(counts().settled != before, damped);
    now_ += 1000;
    if (damped) {
      ASSERT_TRUE(engine().idle(1));
    }
    ASSERT_EQ(run(1)->bubble, &pair);
    ASSERT_EQ(run(2)->bubble, &pair);
    for (int i : {2, 3}) sched::leave(tree.threads[i]);
  }
}

TEST_F(Evolution, EachPullDoublesTheTimeOfRest) {
  engine().set_damping({.settle_ns = 1000, .worth_ns = 0});
  Tree tree = Tree::groups(1, 2);
  NestedBubble& pair = tree.bubbles[1];
  engine().wake(tree.bubbles[0], 0);
  TreeEntity* thread = run(0);
  int pulls = 0;
  // Idle PUs of the two nodes ask every 100 ns, a thousand times.
  for (int i = 0; i < 1000; ++i, now_ += 100) {
    preempt(*thread);
    const std::uint32_t there = thread->figures.last_domain == node(0).id ? 4 : 0;
    pulls += engine().idle(there) ? 1 : 0;
    thread = run(there);
    if (thread == nullptr) thread = run(4 - there);
    ASSERT_NE(thread, nullptr);
    ASSERT_EQ(thread->bubble, &pair);
  }
  EXPECT_GE(pulls, 4);
  EXPECT_LE(pulls, 2 + std::bit_width(100'000u / 1000u));
}

TEST_F(Evolution, WhatIsAboutToEndIsNotMoved) {
  for (const bool damped : {true, false}) {
    SCOPED_TRACE(damped);
    engine().set_damping({.settle_ns = 0, .worth_ns = damped ? 5000u : 0u});
    // What a load is, the engine learns from those that have ended: here 100 ns.
    TreeEntity done;
    done.figures.load = 10;
    done.figures.cpu_ns = 1000;
    for (int i = 0; i < 50; ++i) engine().done(done);
    Tree tree = gangs(2, 2);
    for (TreeEntity& thread : tree.threads) thread.figures.load = 30;
    for (int i : {2, 3})
      tree.threads[i].figures.cpu_ns = 1000;  // 2,000 of 3,000 ns are left of each
    engine().wake(tree.bubbles[0], 0);
    ASSERT_NE(run(0), nullptr);
    ASSERT_NE(run(1), nullptr);
    const std::uint64_t before = counts().ending;
    EXPECT_EQ(engine().idle(4), !damped);
    EXPECT_EQ(counts().ending != before, damped);
    if (!damped) break;
    // With more to do, it is.
    tree.threads[2].figures.load = 70;
    EXPECT_TRUE(engine().idle(4));
    while (TreeEntity* thread = run(4)) sched::leave(*thread);
    while (TreeEntity* thread = run(0)) sched::leave(*thread);
  }
}

// ---- redistribution phases

class Redistribution : public Evolution {
 protected:
  Redistribution() : Evolution("spread") {}
  /// Load of what is queued on or runs on a node.
  std::uint64_t booked(std::uint32_t i) {
    return engine().booked(node(i).id) / policies::kLoadUnit;
  }
};

TEST_F(Redistribution, NewLoadsCountFromTheNextPhaseOn) {
  // Spread deals eight bubbles out by their loads. Then those of node 0 turn out to be heavy.
  Tree tree = Tree::groups(8, 2);
  for (TreeEntity& thread : tree.threads) thread.figures.load = 1;
  engine().wake(tree.bubbles[0], 0);
  TreeEntity* first = run(0);
  ASSERT_NE(first, nullptr);
  preempt(*first);
  ASSERT_EQ(booked(0), 8u);
  ASSERT_EQ(booked(1), 8u);
  for (TreeEntity& thread : tree.threads)
    if (thread.booked_domain != sched::kUnknown32 ||
        thread.bubble->booked_domain != sched::kUnknown32) {
      const std::uint32_t domain = thread.booked_domain != sched::kUnknown32
                                       ? thread.booked_domain
                                       : thread.bubble->booked_domain;
      if (is_below(world_.machine(), domain, node(0).id)) engine().set_load(thread, 9);
    }
  EXPECT_EQ(engine().redistribute(), 1u);  // the outermost one, with all that is in it
  EXPECT_EQ(tree.bubbles[0].state, BubbleState::kClosed);
  EXPECT_EQ(tree.bubbles[0].holder, &world_.queue(0));
  EXPECT_EQ(counts().phases, 1u);
  ASSERT_NE(run(0), nullptr);
  EXPECT_EQ(booked(0) + booked(1), 80u);
  EXPECT_EQ(booked(0), 40u);  // eight heavy threads, four on each
}

TEST_F(Redistribution, WhatOnlyRunsFollowsAtItsNextTick) {
  Tree tree = Tree::groups(1, 2);
  engine().wake(tree.bubbles[0], 0);
  std::vector<TreeEntity*> running;
  for (std::uint32_t pu = 0; pu < 8; ++pu)
    if (TreeEntity* thread = run(pu)) running.push_back(thread);
  ASSERT_EQ(running.size(), 2u);
  EXPECT_FALSE(engine().tick_thread(*running[0]));
  EXPECT_EQ(engine().redistribute(), 0u);  // nothing is queued
  EXPECT_TRUE(engine().tick_thread(*running[0]));
  EXPECT_EQ(tree.bubbles[0].state, BubbleState::kClosing);
  EXPECT_EQ(recalled_.size(), 2u);
  for (TreeEntity* thread : running) preempt(*thread);
  EXPECT_EQ(tree.bubbles[0].holder, &world_.queue(0));
  TreeEntity* again = run(0);
  ASSERT_NE(again, nullptr);
  EXPECT_FALSE(engine().tick_thread(*again));  // once a phase
}

TEST_F(Redistribution, OnePartOfTheMachineLeavesTheOthersAlone) {
  Tree left = Tree::groups(2, 4);
  Tree right = Tree::groups(2, 4);
  engine().wake(left.bubbles[0], node(0).id);
  engine().wake(right.bubbles[0], node(1).id);
  ASSERT_NE(run(0), nullptr);
  ASSERT_NE(run(4), nullptr);
  EXPECT_EQ(engine().redistribute(node(0).id), 1u);
  EXPECT_EQ(left.bubbles[0].state, BubbleState::kClosing);
  EXPECT_EQ(right.bubbles[0].state, BubbleState::kBurst);
  // Bubbles go no higher than where they were woken, even when the whole machine is asked.
  EXPECT_EQ(engine().redistribute(0), 1u);
  EXPECT_EQ(right.bubbles[0].home.load(), &world_.queue(node(1).id));
}

TEST_F(Redistribution, ComesBySetPeriods) {
  engine().set_redistribution_period(1000);
  Tree tree = Tree::groups(2, 8);
  engine().wake(tree.bubbles[0], 0);
  TreeEntity* thread = run(0);
  EXPECT_FALSE(engine().tick_thread(*thread));  // the first period begins
  now_ += 999;
  EXPECT_FALSE(engine().tick_thread(*thread));
  EXPECT_EQ(counts().phases, 0u);
  now_ += 1;
  engine().tick_thread(*thread);
  EXPECT_EQ(counts().phases, 1u);
  EXPECT_EQ(tree.bubbles[0].state, BubbleState::kClosing);
  preempt(*thread);
  thread = run(0);
  now_ += 500;
  EXPECT_FALSE(engine().tick_thread(*thread));
  EXPECT_EQ(counts().phases, 1u);
}

}  // namespace
