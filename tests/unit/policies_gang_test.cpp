// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gang: bubbles run with all their threads or not at all, side by side where they fit.
#include "policies/gang/gang.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "policy_simulation.h"

namespace {

using namespace bosk;
using namespace bosk::test;

/// What a run of gangs looked like.
struct Seen {
  std::uint64_t some = 0;      ///< time, summed over gangs, in which some of its threads ran
  std::uint64_t all = 0;       ///< in which all that were left of it ran
  std::uint64_t wasted = 0;    ///< time in which a gang waited for which there were idle PUs enough
  std::uint64_t busy = 0;      ///< summed over PUs
  std::uint64_t together = 0;  ///< in which more than one gang ran
  std::map<const sched::NestedBubble*, std::uint64_t> ended;
};

/// Looks at every stretch of time; `gangs` are the bubbles of which each is one.
void watch(Simulation& simulation, std::uint32_t pus,
           const std::vector<sched::NestedBubble*>& gangs, Seen* seen) {
  // Read once: bubbles of threads that ended have fewer members.
  simulation.look = [&simulation, pus, gangs, seen](std::uint64_t time) {
    std::map<const sched::NestedBubble*, std::uint32_t> running;
    std::uint32_t busy = 0;
    for (std::uint32_t pu = 0; pu < pus; ++pu) {
      if (simulation.on(pu) == nullptr) continue;
      ++running[simulation.on(pu)->bubble];
      ++busy;
    }
    seen->busy += busy * time;
    std::uint32_t gangs_running = 0;
    bool one_fits = false;
    for (const sched::NestedBubble* gang : gangs) {
      if (gang->member_count == 0) continue;
      const std::uint32_t run = running.count(gang) != 0 ? running[gang] : 0;
      gangs_running += run != 0;
      if (run != 0) {
        seen->some += time;
        if (run == gang->member_count || run == pus) seen->all += time;
      } else if (gang->member_count <= pus - busy) {
        one_fits = true;
      }
      seen->ended[gang] = simulation.now() + time;
    }
    if (one_fits) seen->wasted += time;
    if (gangs_running > 1) seen->together += time;
  };
}

TEST(Gang, TwoThatFitRunSideBySideAndTheThirdWaits) {
  World world(symmetric(2, 1, 4, 1), "gang");
  Simulation simulation(world, 1000);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs;
  for (int i = 0; i < 3; ++i) gangs.push_back(&simulation.team(&root, 4, 500));
  Seen seen;
  watch(simulation, 8, gangs, &seen);
  world.engine().wake(root, 0);
  EXPECT_EQ(simulation.run(), 1000u);  // two and then one
  EXPECT_EQ(seen.all, seen.some);
  EXPECT_EQ(seen.together, 500u);
  EXPECT_EQ(seen.wasted, 0u);
}

TEST(Gang, ASmallOneFillsInWhatALargeOneCannotUse) {
  World world(symmetric(2, 1, 4, 1), "gang");
  Simulation simulation(world, 100'000);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs = {
      &simulation.team(&root, 5, 1000), &simulation.team(&root, 8, 1000),
      &simulation.team(&root, 3, 400), &simulation.team(&root, 2, 500)};
  Seen seen;
  watch(simulation, 8, gangs, &seen);
  world.engine().wake(root, 0);
  EXPECT_EQ(simulation.run(), 2000u);
  EXPECT_EQ(seen.all, seen.some);
  EXPECT_EQ(seen.wasted, 0u);
  EXPECT_EQ(seen.ended[gangs[2]], 400u);
  EXPECT_EQ(seen.ended[gangs[3]], 900u);
}

TEST(Gang, TimeSlicesTakeTurns) {
  World world(symmetric(1, 1, 4, 1), "gang");
  Simulation simulation(world, 10);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs;
  for (int i = 0; i < 3; ++i) gangs.push_back(&simulation.team(&root, 4, 1000));
  Seen seen;
  watch(simulation, 4, gangs, &seen);
  world.engine().wake(root, 0);
  EXPECT_EQ(simulation.run(), 3000u);
  EXPECT_EQ(seen.all, seen.some);
  // None was done before the others had their turns.
  for (const auto& [gang, time] : seen.ended) EXPECT_GE(time, 2970u);
}

TEST(Gang, TheLengthOfASliceIsTheArgument) {
  World world(symmetric(1, 1, 4, 1), "gang:50");
  Simulation simulation(world, 10);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs;
  for (int i = 0; i < 2; ++i) gangs.push_back(&simulation.team(&root, 4, 400));
  Seen seen;
  watch(simulation, 4, gangs, &seen);
  world.engine().wake(root, 0);
  EXPECT_EQ(simulation.run(), 800u);
  EXPECT_EQ(seen.ended[gangs[0]], 400u);  // its slice is 500
}

TEST(Gang, OneOfHigherPriorityIsNotInterrupted) {
  World world(symmetric(1, 1, 4, 1), "gang");
  Simulation simulation(world, 10);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs;
  for (int i = 0; i < 3; ++i) {
    gangs.push_back(&simulation.team(&root, 4, 300));
    gangs.back()->priority = i == 1 ? 5 : 0;
  }
  Seen seen;
  watch(simulation, 4, gangs, &seen);
  world.engine().wake(root, 0);
  EXPECT_EQ(simulation.run(), 900u);
  EXPECT_LE(seen.ended[gangs[1]], 310u);
  EXPECT_GT(seen.ended[gangs[0]], 800u);
}

TEST(Gang, ALargeOneIsNotPassedOverForEver) {
  // Pairs come and go at times that never leave both PUs of the other free at once.
  World world(symmetric(1, 1, 4, 1), "gang");
  Simulation simulation(world, 1'000'000);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs = {&simulation.team(&root, 2, 50)};
  gangs.push_back(&simulation.team(&root, 2, 100));
  gangs.push_back(&simulation.team(&root, 4, 100));
  sched::NestedBubble* large = gangs.back();
  for (int i = 0; i < 100; ++i) gangs.push_back(&simulation.team(&root, 2, 100));
  Seen seen;
  watch(simulation, 4, gangs, &seen);
  world.engine().wake(root, 0);
  simulation.run();
  EXPECT_EQ(seen.all, seen.some);
  EXPECT_LT(seen.ended[large], 1500u);
  EXPECT_GT(simulation.now(), 5000u);
}

TEST(Gang, MoreThreadsThanPusShareTheMachine) {
  World world(symmetric(1, 1, 4, 1), "gang");
  Simulation simulation(world, 10);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  simulation.team(&root, 10, 100);
  simulation.team(&root, 3, 100);
  world.engine().wake(root, 0);
  EXPECT_LE(simulation.run(), 500u);
}

TEST(Gang, ARelationMakesOneOfBubblesInside) {
  World world(symmetric(2, 1, 4, 1), "gang");
  Simulation simulation(world, 10);
  std::vector<sched::NestedBubble*> inner;
  for (int g = 0; g < 2; ++g) {
    sched::NestedBubble& gang = simulation.bubble(nullptr);
    gang.relation = sched::Relation::kGang;
    inner.push_back(&simulation.team(&gang, 3, 100));
    inner.push_back(&simulation.team(&gang, 3, 100));
  }
  std::uint64_t mixed = 0;
  simulation.look = [&](std::uint64_t time) {
    std::set<sched::NestedBubble*> seen;
    for (std::uint32_t pu = 0; pu < 8; ++pu)
      if (simulation.on(pu) != nullptr) seen.insert(simulation.on(pu)->bubble->bubble);
    mixed += seen.size() != 1 ? time : 0;
  };
  for (int g = 0; g < 2; ++g) world.engine().wake(*inner[2 * g]->bubble, 0);
  EXPECT_EQ(simulation.run(), 200u);
  EXPECT_EQ(mixed, 0u);
}

TEST(Gang, ABlockedThreadsPuIsLent) {
  World world(symmetric(1, 1, 4, 1), "gang");
  Tree tree = Tree::groups(2, 3);
  tree.bubbles[0].priority = 1;
  world.engine().wake(tree.bubbles[0], 0);
  const auto run = [&](std::uint32_t pu) {
    sched::Found found = world.engine().next(pu);
    if (!found) world.engine().idle(pu);
    return found ? found : world.engine().next(pu);
  };
  std::vector<std::uint32_t> pus;
  for (std::uint32_t pu = 0; pu < 4; ++pu) {
    const sched::Found found = run(pu);
    if (found) pus.push_back(pu);
  }
  ASSERT_EQ(pus.size(), 3u);  // the second gang waits, though a PU is idle: it runs wholly or not
  EXPECT_EQ(tree.bubbles[2].state, sched::BubbleState::kClosed);
  // Two of the three block, and their PUs have nothing to do for a while.
  sched::Found lent{};
  for (int i = 0; i < 3 && !lent; ++i)
    for (const std::uint32_t pu : {pus[0], pus[1]})
      if (sched::Found found = run(pu)) lent = found;
  EXPECT_TRUE(lent);
  EXPECT_EQ(tree.bubbles[2].state, sched::BubbleState::kBurst);
}

/// Random gangs, in all four times as wide as the machine, each with all its threads at once, whatever `width()` and
/// `work()` say; processors that a waiting one could have had idle for no more than this share of the time.
template <class Width, class Work>
void run_random_gangs(World& world, sched::Relation relation, Width&& width, Work&& work,
                      double most_wasted) {
  const std::uint32_t pus = world.machine().n_pus;
  Simulation simulation(world, 100);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs;
  std::uint64_t total = 0;
  for (std::uint32_t widths = 0; widths < 4 * pus && gangs.size() < 300;) {
    const std::uint32_t n = width();
    const std::uint64_t each = work();
    gangs.push_back(&simulation.team(&root, n, each));
    gangs.back()->relation = relation;
    widths += n;
    total += n * each;
  }
  Seen seen;
  watch(simulation, pus, gangs, &seen);
  world.engine().wake(root, 0);
  const std::uint64_t time = simulation.run();
  EXPECT_EQ(seen.busy, total);
  EXPECT_GE(static_cast<double>(seen.all), 0.95 * static_cast<double>(seen.some));
  EXPECT_LE(static_cast<double>(seen.wasted), most_wasted * static_cast<double>(time));
}

/// Gangs of any width on any machine, long and short, with slices.
TEST(Gang, OverlapsOnAnyMachineAndNoProcessorIdlesThatCouldRun) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    MachinePtr machine = any_machine(seed);
    const std::uint32_t pus = machine->n_pus;
    if (pus < 2) continue;
    std::mt19937 random(seed);
    World world(std::move(machine), "gang");
    run_random_gangs(
        world, sched::Relation::kNone,
        [&] { return 1 + random() % (random() % 3 == 0 ? pus : 1 + pus / 8); },
        [&] { return 1 + random() % 2000; }, 0.01);
  }
}

/// Gangs by their relation, which the policy has dealt to nodes: a PU of another node takes what fits there.
TEST(Gang, ByItsRelationDoesNotWaitForANodeWhileAnotherHasRoom) {
  for (const char* policy : {"null", "spread", "cache", "steal"}) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message() << policy << ", seed " << seed);
      std::mt19937 random(seed);
      const std::uint32_t nodes = 2 + seed % 3;
      World world(symmetric(nodes, 1, 2, 1), policy);
      run_random_gangs(
          world, sched::Relation::kGang, [&] { return 1 + random() % 3; },
          [&] { return 500 + random() % 2000; }, 0.02);
    }
  }
}

/// The same without slices, threads of a gang ending at different times, and workers that have found nothing sleep until they
/// are called: so it is who comes last that must find what fits, be it on PUs of several nodes.
TEST(Gang, ByItsRelationStartsOnPusThatSleepOnSeveralNodes) {
  for (const char* policy : {"null", "spread", "cache", "steal"}) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(testing::Message() << policy << ", seed " << seed);
      std::mt19937 random(seed);
      World world(symmetric(2 + seed % 3, 1, 2, 1), policy);
      const std::uint32_t pus = world.machine().n_pus;
      Simulation simulation(world, 1'000'000);
      simulation.sleeps = true;
      sched::NestedBubble& root = simulation.bubble(nullptr);
      std::vector<sched::NestedBubble*> gangs;
      for (std::uint32_t widths = 0; widths < 4 * pus;) {
        gangs.push_back(&simulation.bubble(&root));
        gangs.back()->relation = sched::Relation::kGang;
        const std::uint32_t n = 1 + random() % 3;
        for (std::uint32_t i = 0; i < n; ++i)
          simulation.thread(*gangs.back(), 500 + random() % 2000);
        widths += n;
      }
      Seen seen;
      watch(simulation, pus, gangs, &seen);
      world.engine().wake(root, 0);
      simulation.run();
      EXPECT_EQ(seen.all, seen.some);
      EXPECT_EQ(seen.wasted, 0u);
    }
  }
}

TEST(Gang, TheSameGangsUnderNullOverlapLittle) {
  // What the figures above are worth: the same work from one queue.
  World world(symmetric(2, 1, 4, 1), "null");
  Simulation simulation(world, 100);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  std::vector<sched::NestedBubble*> gangs;
  for (std::uint32_t i = 0; i < 12; ++i) gangs.push_back(&simulation.team(&root, 5, 1000));
  Seen seen;
  watch(simulation, 8, gangs, &seen);
  world.engine().wake(root, 0);
  simulation.run();
  EXPECT_LT(static_cast<double>(seen.all), 0.8 * static_cast<double>(seen.some));
}

TEST(Gang, ATeamIsTogetherWhereThereIsAPuForEach) {
  World world(symmetric(4, 2, 2, 2), "gang");
  const Machine& m = world.machine();
  for (const auto& [members, kind] :
       {std::pair{2u, Kind::kCore}, {4u, Kind::kL3}, {5u, Kind::kNode}, {9u, Kind::kMachine}}) {
    policies::TeamPlacement team;
    world.engine().place_team({.members = members, .opener_domain = m.pu(13).id, .opener_pu = 13},
                              &team);
    EXPECT_TRUE(team.is_together());
    EXPECT_EQ(team.scope(), kind == Kind::kMachine ? 0 : m.domain_of_pu(13, kind)->id);
  }
}

TEST(Gang, InTheChildOfAForkAllPusAreFree) {
  World world(symmetric(1, 1, 4, 1), "gang");
  Tree parents = Tree::groups(1, 4);
  Tree childs = Tree::groups(1, 4);
  world.engine().wake(parents.bubbles[0], 0);
  ASSERT_TRUE(world.engine().next(0));
  for (std::uint32_t d = 0; d < world.machine().n_domains; ++d)
    while (world.queue(d).first != nullptr) world.queue(d).remove_locked(world.queue(d).first);
  world.engine().forget_after_fork();
  world.engine().wake(childs.bubbles[0], 0);
  EXPECT_EQ(run_all(world, childs, 1).size(), 4u);
}

TEST(Gang, RefusesWhatIsNoSlice) {
  const MachinePtr machine = symmetric(1, 1, 2, 1);
  policies::PolicyPlan plan;
  for (const char* text : {"gang:0", "gang:much", "gang:1000001"}) {
    topology::Error error;
    EXPECT_FALSE(policies::make_plan(text, *machine, &plan, &error));
    EXPECT_NE(std::string(error.text).find("time slice"), std::string::npos) << error.text;
  }
}

}  // namespace
