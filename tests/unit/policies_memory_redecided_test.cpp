// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// memory, of threads that run or are blocked: when it is decided anew where they go, and how they get there.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "attached_memory.h"

namespace {

using namespace bosk;
using namespace bosk::test;

/// A team that was placed by its memory on node 1 of 4, and runs.
struct Placed {
  World world{symmetric(4, 1, 2, 2), "memory"};
  Simulation simulation{world, 100};
  Attached memory{world};
  sched::NestedBubble& root = simulation.team(nullptr, 4, 1000);
  std::vector<sched::TreeEntity*> running;

  Placed() {
    for (SimThread& thread : simulation.threads()) memory.attach(thread, 1, 8 * kMiB);
    world.engine().wake(root, 0);
    for (std::uint32_t pu = 0; pu < m().n_pus; ++pu) start(pu);
    EXPECT_EQ(running.size(), 4u);
  }
  const Machine& m() const { return world.machine(); }
  bool start(std::uint32_t pu) {
    const sched::Found found = world.engine().next(pu);
    if (!found) return false;
    auto* thread = static_cast<sched::TreeEntity*>(found.entity);
    sched::note_running(*thread, pu, m().pu(pu).id);
    running.push_back(thread);
    return true;
  }
  /// Their workers requeue them, and look for work.
  std::uint32_t run_on(std::uint32_t node) {
    for (sched::TreeEntity* thread : std::exchange(running, {})) {
      thread->activity = sched::Activity::kReady;
      sched::requeue(*thread, world.queue(thread->figures.last_domain));
    }
    for (std::uint32_t pu = 0; pu < m().n_pus; ++pu)
      while (start(pu)) {
      }
    std::uint32_t there = 0;
    for (const SimThread& thread : simulation.threads()) there += node_of(m(), thread) == node;
    return there;
  }
  void move_memory(std::uint32_t from, std::uint32_t to) {
    for (SimThread& thread : simulation.threads()) memory.move(thread, from, to);
  }
  std::uint64_t closed(policies::MemoryTrigger trigger) {
    return world.engine().memory_counts().closed[static_cast<unsigned>(trigger)];
  }
  std::uint64_t looked(policies::MemoryTrigger trigger) {
    return world.engine().memory_counts().looked[static_cast<unsigned>(trigger)];
  }
};

using policies::MemoryTrigger;

TEST(MemoryRedecided, NothingMovesWhenNothingContradicts) {
  Placed placed;
  EXPECT_FALSE(placed.world.engine().redecide(placed.root, MemoryTrigger::kHint));
  // A little memory elsewhere does not speak against it either.
  for (SimThread& thread : placed.simulation.threads()) placed.memory.attach(thread, 3, kMiB);
  EXPECT_FALSE(placed.world.engine().redecide(placed.root, MemoryTrigger::kHint));
  placed.world.engine().memory_changed(MemoryTrigger::kAttached);
  EXPECT_FALSE(placed.world.engine().tick_thread(*placed.running[0]));
  EXPECT_EQ(placed.root.state, sched::BubbleState::kBurst);
  EXPECT_EQ(placed.looked(MemoryTrigger::kHint), 2u);
  EXPECT_EQ(placed.looked(MemoryTrigger::kAttached), 1u);
  EXPECT_EQ(placed.run_on(1), 4u);
}

TEST(MemoryRedecided, AHintRedecidesAtOnce) {
  Placed placed;
  placed.move_memory(1, 3);
  EXPECT_TRUE(placed.world.engine().redecide(placed.root, MemoryTrigger::kHint));
  EXPECT_NE(placed.root.state, sched::BubbleState::kBurst);
  EXPECT_EQ(placed.closed(MemoryTrigger::kHint), 1u);
  EXPECT_EQ(placed.run_on(3), 4u);
  EXPECT_FALSE(placed.world.engine().redecide(placed.root, MemoryTrigger::kHint));
}

TEST(MemoryRedecided, AHintOfTheTeamWaitsForAllOfIt) {
  Placed placed;
  placed.move_memory(1, 3);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i)
      EXPECT_FALSE(placed.world.engine().redecide_when_all(placed.root, 4));
    EXPECT_EQ(placed.root.state, sched::BubbleState::kBurst);
    EXPECT_TRUE(placed.world.engine().redecide_when_all(placed.root, 4));
    EXPECT_EQ(placed.run_on(round == 0 ? 3 : 2), 4u);
    placed.move_memory(3, 2);
  }
}

TEST(MemoryRedecided, WhatIsAttachedIsLookedAtOnceWithTheNextTick) {
  Placed placed;
  placed.move_memory(1, 2);
  EXPECT_FALSE(placed.world.engine().tick_thread(*placed.running[0]));  // nobody said anything
  for (int i = 0; i < 5; ++i) placed.world.engine().memory_changed(MemoryTrigger::kAttached);
  EXPECT_TRUE(placed.world.engine().tick_thread(*placed.running[0]));
  EXPECT_FALSE(placed.world.engine().tick_thread(*placed.running[1]));
  EXPECT_EQ(placed.looked(MemoryTrigger::kAttached), 1u);
  EXPECT_EQ(placed.closed(MemoryTrigger::kAttached), 1u);
  EXPECT_EQ(placed.run_on(2), 4u);
}

TEST(MemoryRedecided, WhoMovedForItsMemoryIsLetAloneForLongerEachTime) {
  Placed placed;
  std::uint64_t time = 1'000'000;
  policies::PolicyEngine& engine = placed.world.engine();
  engine.set_clock({[](void* context) { return *static_cast<std::uint64_t*>(context); }, &time});
  engine.set_damping({.settle_ns = 1000, .worth_ns = 0});
  std::uint32_t at = 1;
  const auto move_on = [&] {
    placed.move_memory(at, (at + 1) % 4);
    at = (at + 1) % 4;
    engine.memory_changed(MemoryTrigger::kAttached);
  };
  const auto closed_at_a_tick = [&] { return engine.tick_thread(*placed.running[0]); };
  for (const std::uint64_t pause : {0u, 1000u, 2000u, 4000u}) {
    move_on();
    if (pause != 0) {
      EXPECT_FALSE(closed_at_a_tick());
      time += pause - 1;
      EXPECT_FALSE(closed_at_a_tick());
      EXPECT_FALSE(engine.redecide(placed.root, MemoryTrigger::kIdle));
      ++time;
    }
    EXPECT_TRUE(closed_at_a_tick()) << pause;
    EXPECT_EQ(placed.run_on(at), 4u);
  }
  // The program knows better.
  move_on();
  EXPECT_TRUE(engine.redecide(placed.root, MemoryTrigger::kHint));
  EXPECT_EQ(placed.run_on(at), 4u);
  // After so long in peace it begins anew.
  time += 2 * 16'000;
  for (const std::uint64_t pause : {0u, 1000u}) {
    time += pause;
    move_on();
    EXPECT_TRUE(closed_at_a_tick()) << pause;
    EXPECT_EQ(placed.run_on(at), 4u);
  }
  engine.set_clock({});
}

TEST(MemoryRedecided, AnIdlePuHasItLookedAt) {
  Placed placed;
  placed.move_memory(1, 2);
  EXPECT_FALSE(placed.world.engine().idle(0));
  EXPECT_TRUE(placed.world.engine().tick_thread(*placed.running[0]));
  EXPECT_EQ(placed.closed(MemoryTrigger::kIdle), 1u);
  EXPECT_EQ(placed.run_on(2), 4u);
}

TEST(MemoryRedecided, ARedistributionPhaseDrawsToMemory) {
  Placed placed;
  placed.move_memory(1, 0);
  placed.world.engine().redistribute();
  EXPECT_TRUE(placed.world.engine().tick_thread(*placed.running[0]));
  EXPECT_EQ(placed.run_on(0), 4u);
}

/// Blocked ones cannot be put back into the bubble; they are told where to wake.
TEST(MemoryRedecided, WhoIsBlockedGoesThereWhenItWakes) {
  Placed placed;
  placed.move_memory(1, 3);
  for (std::uint32_t i = 1; i < 4; ++i) sched::note_blocked(*placed.running[i]);
  EXPECT_TRUE(placed.world.engine().redecide(placed.root, MemoryTrigger::kHint));
  // All are thought of as there, so nobody decides it again.
  std::vector<std::uint32_t> pus;
  for (std::uint32_t i = 1; i < 4; ++i) {
    const std::uint32_t to = placed.world.engine().take_wake_domain(*placed.running[i]);
    ASSERT_LT(to, placed.m().n_domains);
    EXPECT_EQ(placed.m().node_of_pu(placed.m().domain_array[to].first_pu), 3u);
    EXPECT_EQ(placed.m().node_of_pu(placed.m().domain_array[to].last_pu), 3u);
    EXPECT_EQ(placed.running[i]->booked_domain, to);
    pus.push_back(to);
    // Once.
    EXPECT_EQ(placed.world.engine().take_wake_domain(*placed.running[i]), topology::kNone);
  }
  std::sort(pus.begin(), pus.end());
  EXPECT_EQ(std::unique(pus.begin(), pus.end()), pus.end()) << "each has room of its own";
  EXPECT_EQ(placed.run_on(3), 4u);
}

TEST(MemoryRedecided, WhoStaysIsToldNothing) {
  Placed placed;
  sched::note_blocked(*placed.running[1]);
  EXPECT_FALSE(placed.world.engine().redecide(placed.root, MemoryTrigger::kHint));
  EXPECT_EQ(placed.world.engine().take_wake_domain(*placed.running[1]), topology::kNone);
}

/// Two nodes of two PUs; nobody but the last PU of all looks for work.
TEST(MemoryRedecided, IdlePusLeaveWhatIsNearItsMemory) {
  for (const bool crowded : {false, true}) {
    SCOPED_TRACE(crowded);
    World world(symmetric(2, 1, 2, 1), crowded ? "memory:400" : "memory");
    Simulation simulation(world, 100);
    Attached memory(world);
    sched::NestedBubble& root = simulation.team(nullptr, crowded ? 4 : 2, 1000);
    memory.attach(root, 0, kMiB);
    world.engine().wake(root, 0);
    ASSERT_TRUE(world.engine().next(0));
    for (const SimThread& thread : simulation.threads())
      ASSERT_EQ(node_of(world.machine(), thread), 0u);
    // Each of two will have a PU of its own there; two of four would wait for the others.
    EXPECT_EQ(world.engine().idle(3), crowded);
    EXPECT_EQ(static_cast<bool>(world.engine().next(3)), crowded);
    // On its own node a PU takes what there is.
    EXPECT_TRUE(world.engine().idle(1) || world.engine().next(1));
  }
}

TEST(MemoryRedecided, IdlePusTakeWhatHasItsMemoryWithThem) {
  World world(symmetric(2, 1, 2, 1), "memory");
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& root = simulation.team(nullptr, 2, 1000);
  memory.attach(root, 0, kMiB);
  world.engine().wake(root, 0);
  ASSERT_TRUE(world.engine().next(0));
  memory.move(root, 0, 1);
  EXPECT_TRUE(world.engine().idle(3));
  EXPECT_TRUE(world.engine().next(3));
}

/// Who decides takes it to be on its way; nobody else may want its PU for long.
TEST(MemoryRedecided, WhoRunsElsewhereThanWasDecidedLeavesAtItsTick) {
  Placed placed;
  const auto& engine = placed.world.engine();
  sched::TreeEntity& thread = *placed.running[0];
  auto& told = thread.figures.wake_domain;
  EXPECT_FALSE(engine.is_told_elsewhere(thread)) << "nobody has told it anything";
  told = domain_of(placed.m(), 3).id;
  EXPECT_TRUE(engine.is_told_elsewhere(thread));
  EXPECT_TRUE(engine.is_told_elsewhere(thread)) << "until it has gone";
  const auto pu = placed.m().n_pus - 1;  // of node 3
  sched::note_running(thread, pu, placed.m().pu(pu).id);
  EXPECT_FALSE(engine.is_told_elsewhere(thread));
  EXPECT_EQ(told, topology::kNone) << "it is there, and may be stolen from there";
}

/// It was on its way back into the bubble when it was told.
TEST(MemoryRedecided, APlacementIsNewerThanWhatWasDecidedBefore) {
  Placed placed;
  placed.move_memory(1, 3);
  EXPECT_TRUE(placed.world.engine().redecide(placed.root, MemoryTrigger::kHint));
  sched::TreeEntity& thread = *placed.running[0];
  thread.figures.wake_domain = domain_of(placed.m(), 0).id;
  EXPECT_EQ(placed.run_on(3), 4u);
  EXPECT_EQ(thread.figures.wake_domain, topology::kNone);
}

TEST(MemoryRedecided, OtherPoliciesAreNotAsked) {
  World world(symmetric(4, 1, 2, 2), "cache");
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& root = simulation.team(nullptr, 4, 1000);
  for (SimThread& thread : simulation.threads()) memory.attach(thread, 3, kMiB);
  world.engine().wake(root, 0);
  world.engine().next(0);
  world.engine().memory_changed(MemoryTrigger::kAttached);
  EXPECT_FALSE(world.engine().redecide(root, MemoryTrigger::kHint));
  EXPECT_EQ(world.engine().memory_counts().looked[2], 0u);
}

}  // namespace
