// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// memory, of threads that run or are blocked: when it is decided anew where they go, and how they get there.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "attached_memory.h"
#include "policies/decided.h"

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

/// Teams of as many threads as a node has PUs, each with memory of its own on a node of its own, all in one bubble; they run.
struct Teams {
  World world{symmetric(4, 1, 2, 2), "memory"};
  Simulation simulation{world, 100};
  Attached memory{world};
  sched::NestedBubble& root = simulation.bubble(nullptr);
  const std::uint32_t nodes = m().n_nodes;
  const std::uint32_t each = m().n_pus / nodes;

  explicit Teams(bool of_threads = false) {
    for (std::uint32_t t = 0; t < nodes; ++t) {
      sched::NestedBubble& team = simulation.team(&root, each, 1000);
      if (!of_threads) memory.attach(team, t, 8 * kMiB);
    }
    for (SimThread& thread : simulation.threads())
      if (of_threads) memory.attach(thread, team_of(thread), kMiB);
    engine().wake(root, 0);
    for (std::uint32_t pu = 0; pu < m().n_pus; ++pu) start(pu);
    for (const SimThread& thread : simulation.threads())
      EXPECT_EQ(node_of(m(), thread), team_of(thread));
  }
  const Machine& m() const { return world.machine(); }
  policies::PolicyEngine& engine() { return world.engine(); }
  std::uint32_t team_of(const SimThread& thread) const { return (thread.number - 1) / each; }
  SimThread& thread(std::uint32_t i) { return simulation.threads()[i]; }
  std::uint32_t count() const { return m().n_pus; }

  /// False: it finds nothing.
  bool start(std::uint32_t pu) {
    const sched::Found found = engine().next(pu);
    if (!found) return false;
    sched::note_running(*static_cast<sched::TreeEntity*>(found.entity), pu, m().pu(pu).id);
    return true;
  }
  /// What each team works on is the next one's, as the phase change of Twisted-STREAM has it.
  void twist() {
    for (std::uint32_t i = 1; i < simulation.bubbles().size(); ++i)
      memory.move(simulation.bubbles()[i], i - 1, i % nodes);
  }
  void twist_threads() {
    for (SimThread& thread : simulation.threads())
      memory.move(thread, team_of(thread), (team_of(thread) + 1) % nodes);
  }
  /// What threads/source.cpp does when a thread is woken, or its worker puts it back.
  void wake(SimThread& thread) {
    const std::uint32_t decided = engine().take_wake_domain(thread);
    const std::uint32_t to =
        decided != topology::kNone ? decided : thread.figures.last_domain.load();
    sched::requeue(thread, world.queue(to));
  }
  /// All run or wait to, each near its memory and with a PU of its own.
  void expect_all(std::uint32_t nodes_on) {
    for (const SimThread& thread : simulation.threads())
      EXPECT_EQ(node_of(m(), thread), (team_of(thread) + nodes_on) % nodes) << thread.number;
    for (std::uint32_t node = 0; node < nodes; ++node)
      EXPECT_EQ(engine().booked(domain_of(m(), node).id), each * policies::kLoadUnit) << node;
    for (std::uint32_t pu = 0; pu < m().n_pus; ++pu)
      EXPECT_EQ(engine().booked(m().pu(pu).id), policies::kLoadUnit) << pu;
  }
};

/// One gives the hint while the others wait for it; some of those wake before it is back in the bubble, the others after that.
TEST(MemoryRedecided, WhatWasDecidedForAllHoldsWhenSomeAreBack) {
  for (const bool of_threads : {false, true})
    for (std::uint32_t back = 0; back < 16; ++back) {
      SCOPED_TRACE(back + (of_threads ? 100 : 0));
      Teams teams(of_threads);
      const std::uint32_t runs = 6;
      for (std::uint32_t i = 0; i < teams.count(); ++i)
        if (i != runs) sched::note_blocked(teams.thread(i));
      of_threads ? teams.twist_threads() : teams.twist();
      ASSERT_TRUE(teams.engine().redecide(teams.root, MemoryTrigger::kHint));
      // In another order than they were made in, so that teams are torn.
      std::vector<std::uint32_t> order;
      for (std::uint32_t i = 0; i < teams.count(); ++i)
        if (i * 5 % 16 != runs) order.push_back(i * 5 % 16);
      for (std::uint32_t k = 0; k < back; ++k) teams.wake(teams.thread(order[k]));
      EXPECT_EQ(teams.root.state, sched::BubbleState::kClosing);
      teams.wake(teams.thread(runs));
      EXPECT_EQ(teams.root.state, sched::BubbleState::kClosed);
      ASSERT_EQ(teams.root.holder, &teams.world.queue(0));
      // Somebody of any node finds it.
      teams.start(15 - back);
      EXPECT_EQ(teams.root.state, sched::BubbleState::kBurst);
      for (std::uint32_t k = back; k < order.size(); ++k) teams.wake(teams.thread(order[k]));
      for (std::uint32_t pu = 0; pu < teams.count(); ++pu) teams.start(pu);
      teams.expect_all(1);
      // It held for that time. From now on the policy is asked again.
      of_threads ? teams.twist_threads() : teams.twist();
      EXPECT_FALSE(policies::has_note(teams.root, policies::kDecided));
    }
}

/// A bubble in which nobody is goes nowhere: who wakes while it is closed would come out there.
TEST(MemoryRedecided, NobodyIsBack) {
  for (const bool of_threads : {false, true}) {
    Teams teams(of_threads);
    for (std::uint32_t i = 0; i < teams.count(); ++i) sched::note_blocked(teams.thread(i));
    of_threads ? teams.twist_threads() : teams.twist();
    ASSERT_TRUE(teams.engine().redecide(teams.root, MemoryTrigger::kHint));
    EXPECT_EQ(teams.root.state, sched::BubbleState::kClosed);
    // What is booked for them has gone ahead, so that nobody sees two threads for each PU meanwhile.
    for (std::uint32_t pu = 0; pu < teams.count(); ++pu)
      EXPECT_EQ(teams.engine().booked(teams.m().pu(pu).id), policies::kLoadUnit) << pu;
    EXPECT_FALSE(teams.start(3));
    EXPECT_EQ(teams.root.state, sched::BubbleState::kBurst);
    EXPECT_EQ(teams.root.booked_domain, topology::kNone);
    for (std::uint32_t i = 0; i < teams.count(); ++i) teams.wake(teams.thread(i * 5 % 16));
    for (std::uint32_t pu = 0; pu < teams.count(); ++pu) EXPECT_TRUE(teams.start(pu)) << pu;
    teams.expect_all(1);
  }
}

/// Until the others have woken their PUs are free, and on the node where these were is room.
TEST(MemoryRedecided, IdlePusLeaveWhoHasWokenFirst) {
  Teams teams;
  for (std::uint32_t i = 0; i < teams.count(); ++i) sched::note_blocked(teams.thread(i));
  teams.twist();
  ASSERT_TRUE(teams.engine().redecide(teams.root, MemoryTrigger::kHint));
  EXPECT_FALSE(teams.start(0));
  for (std::uint32_t i = 0; i < teams.each; ++i) {
    teams.wake(teams.thread(i));  // of the first team, to node 1
    for (const std::uint32_t pu : {0u, 3u, 8u, 15u}) {
      EXPECT_FALSE(teams.engine().idle(pu)) << pu;
      EXPECT_FALSE(teams.start(pu)) << pu;
    }
  }
  for (std::uint32_t pu = teams.each; pu < 2 * teams.each; ++pu) EXPECT_TRUE(teams.start(pu)) << pu;
}

/// What is new in the bubble since, nobody has thought of.
TEST(MemoryRedecided, SomebodyNewIsPlacedByThePolicy) {
  Teams teams;
  for (std::uint32_t i = 1; i < teams.count(); ++i) sched::note_blocked(teams.thread(i));
  teams.twist();
  ASSERT_TRUE(teams.engine().redecide(teams.root, MemoryTrigger::kHint));
  SimThread& added = teams.simulation.thread(teams.simulation.bubbles()[1], 1000);
  teams.wake(teams.thread(0));
  teams.start(0);
  EXPECT_EQ(node_of(teams.m(), added), 1u);
  EXPECT_EQ(node_of(teams.m(), teams.thread(0)), 1u);
}

/// A hint for a bubble that is closed is not lost: whoever looks at memory is told when it has been placed.
TEST(MemoryRedecided, AHintThatComesLateIsLookedAtAfterwards) {
  for (const bool late : {false, true}) {
    Placed placed;
    policies::PolicyEngine& engine = placed.world.engine();
    policies::MemoryRequests requests;
    requests.set_served(true);
    placed.root.number = 7;
    engine.set_memory_requests(&requests);
    for (sched::TreeEntity* thread : placed.running) sched::note_blocked(*thread);
    placed.move_memory(1, 3);
    ASSERT_TRUE(engine.redecide_threads(placed.root, MemoryTrigger::kHint));
    EXPECT_FALSE(engine.may_redecide(placed.root, MemoryTrigger::kHint)) << "it is closed";
    if (late) policies::set_note(placed.root, policies::kLateHint);
    EXPECT_FALSE(placed.start(0));
    // Of those who are in it nobody has memory: nobody is in it.
    policies::MemoryRequest asked{};
    EXPECT_EQ(requests.take(&asked) && asked.name == 7, late);
    EXPECT_FALSE(requests.take(&asked));
    EXPECT_TRUE(engine.may_redecide(placed.root, MemoryTrigger::kHint));
    EXPECT_EQ(policies::take_note(placed.root, policies::kLateHint), late);
    EXPECT_FALSE(policies::take_note(placed.root, policies::kLateHint));
  }
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

/// It was told when somebody else had begun to close the bubble, so that the policy is asked.
TEST(MemoryRedecided, APlacementIsNewerThanWhatWasDecidedBefore) {
  Placed placed;
  placed.move_memory(1, 3);
  placed.world.engine().redistribute();
  EXPECT_TRUE(placed.world.engine().tick_thread(*placed.running[0]));
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
