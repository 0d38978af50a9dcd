// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// memory: threads and bubbles go where their memory is, within the load balance.
#include "policies/memory/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attached_memory.h"
#include "policies/memory/draw.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using testing::HasSubstr;

TEST(Memory, DoesWhatItsPictureShows) {
  World world(symmetric(2, 2, 2, 1), "memory");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& root = simulation.bubble(nullptr);
  sched::NestedBubble& a = simulation.team(&root, 2, 10);
  sched::NestedBubble& b = simulation.team(&root, 2, 10);
  sched::NestedBubble& c = simulation.team(&root, 2, 10);
  memory.attach(a, 1, 8 * kMiB);
  memory.attach(simulation.threads()[2], 0, 4 * kMiB);
  memory.attach(simulation.threads()[3], 1, 4 * kMiB);
  world.engine().wake(root, 0);
  ASSERT_TRUE(world.engine().next(0));
  std::vector<std::uint32_t> nodes;
  for (const SimThread& thread : simulation.threads()) nodes.push_back(node_of(m, thread));
  EXPECT_THAT(nodes, testing::ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_EQ(b.state, sched::BubbleState::kBurst);
  EXPECT_EQ(simulation.threads()[4].bubble, &c);
}

TEST(Memory, DrawsEveryTeamToItsNode) {
  // Up to 1,024 PUs; data lie in another order than the tree would be dealt out in.
  for (const auto& [nodes, caches, cores, pus] :
       {std::array{2u, 1u, 1u, 1u}, {2u, 1u, 4u, 1u}, {4u, 2u, 2u, 2u}, {64u, 2u, 4u, 2u}}) {
    SCOPED_TRACE(nodes);
    for (const bool of_bubble : {true, false}) {
      World world(symmetric(nodes, caches, cores, pus), "memory");
      const Machine& m = world.machine();
      Simulation simulation(world, 100);
      Attached memory(world);
      sched::NestedBubble& root = simulation.bubble(nullptr);
      const std::uint32_t each = m.n_pus / nodes;
      std::vector<std::uint32_t> wanted;
      for (std::uint32_t t = 0; t < nodes; ++t) {
        const std::uint32_t node = (t * 5 + 1) % nodes;
        sched::NestedBubble& team = simulation.team(&root, each, 10);
        if (of_bubble) memory.attach(team, node, kMiB);
        for (std::uint32_t i = 0; i < each; ++i) {
          wanted.push_back(node);
          if (!of_bubble) memory.attach(simulation.threads()[t * each + i], node, kMiB);
        }
      }
      world.engine().wake(root, 0);
      ASSERT_TRUE(world.engine().next(0));
      for (const SimThread& thread : simulation.threads())
        ASSERT_EQ(node_of(m, thread), wanted[thread.number - 1]) << thread.number;
      // And within the node each has a PU of its own.
      for (std::uint32_t pu = 0; pu < m.n_pus; ++pu)
        EXPECT_EQ(world.engine().booked(m.pu(pu).id), policies::kLoadUnit);
    }
  }
}

TEST(Memory, FewThreadsMayAllBeOnOneNode) {
  World world(symmetric(4, 1, 4, 1), "memory");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& root = simulation.team(nullptr, 4, 10);
  for (SimThread& thread : simulation.threads()) memory.attach(thread, 2, kMiB);
  world.engine().wake(root, 0);
  world.engine().next(0);
  for (const SimThread& thread : simulation.threads()) EXPECT_EQ(node_of(m, thread), 2u);
}

TEST(Memory, KeepsTheLoadBalanced) {
  // Everybody's memory is on node 0 or by chance, loads differ by 20, some is booked: on machines of all shapes no node
  // has twice its share, or one thread more than its share.
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    World world(any_machine(seed), "memory");
    const Machine& m = world.machine();
    std::mt19937 random(seed);
    Simulation simulation(world, 100);
    Attached memory(world);
    simulation.bubble(nullptr);
    for (std::uint32_t i = 1; i < 30; ++i) simulation.bubble(&simulation.bubbles()[random() % i]);
    std::uint64_t heaviest = 0;
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < 4 * m.n_pus; ++i) {
      SimThread& thread = simulation.thread(simulation.bubbles()[random() % 30], 10);
      thread.figures.load = 1 + random() % 20;
      heaviest = std::max<std::uint64_t>(heaviest, thread.figures.load * policies::kLoadUnit);
      all += thread.figures.load * policies::kLoadUnit;
      if (random() % 4 != 0)
        memory.attach(thread, seed % 3 == 0 ? random() % m.n_nodes : 0, (1 + random() % 9) * kMiB);
    }
    world.engine().wake(simulation.bubbles()[0], 0);
    ASSERT_TRUE(world.engine().next(random() % m.n_pus));
    for (std::uint32_t node = 0; node < m.n_nodes; ++node) {
      const Domain& d = domain_of(m, node);
      const double share = static_cast<double>(all) * d.n_pus() / m.n_pus;
      EXPECT_LE(static_cast<double>(world.engine().booked(d.id)),
                1.33 * share + static_cast<double>(heaviest) + 1)
          << node;
    }
    EXPECT_NEAR(static_cast<double>(world.engine().booked(0)), static_cast<double>(all),
                static_cast<double>(all) / 100);
  }
}

TEST(Memory, TheLimitSaysHowUnevenItMayBe) {
  for (const auto& [policy, most] :
       {std::pair{"memory:100", 4u}, {"memory", 5u}, {"memory:150", 6u}, {"memory:1000", 8u}}) {
    World world(symmetric(2, 1, 2, 1), policy);
    const Machine& m = world.machine();
    Simulation simulation(world, 100);
    Attached memory(world);
    sched::NestedBubble& root = simulation.team(nullptr, 8, 10);
    for (SimThread& thread : simulation.threads()) memory.attach(thread, 1, kMiB);
    world.engine().wake(root, 0);
    world.engine().next(0);
    EXPECT_EQ(world.engine().booked(domain_of(m, 1).id), most * policies::kLoadUnit) << policy;
  }
}

TEST(Memory, WhoHasMostAtStakeComesFirst) {
  World world(symmetric(2, 1, 2, 1), "memory:100");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& root = simulation.team(nullptr, 4, 10);
  for (SimThread& thread : simulation.threads()) memory.attach(thread, 1, thread.number * kMiB);
  world.engine().wake(root, 0);
  world.engine().next(0);
  std::vector<std::uint32_t> nodes;
  for (const SimThread& thread : simulation.threads()) nodes.push_back(node_of(m, thread));
  EXPECT_THAT(nodes, testing::ElementsAre(0, 0, 1, 1));
}

TEST(Memory, InterleavedMemoryDrawsNothing) {
  World world(symmetric(4, 1, 2, 1), "memory");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& root = simulation.team(nullptr, 8, 10);
  for (SimThread& thread : simulation.threads())
    for (std::uint32_t node = 0; node < 4; ++node)
      memory.attach(thread, node, kMiB + (node == 0 ? 4096 : 0));
  world.engine().wake(root, 0);
  world.engine().next(0);
  for (std::uint32_t node = 0; node < 4; ++node)
    EXPECT_EQ(world.engine().booked(domain_of(m, node).id), 2 * policies::kLoadUnit);
}

TEST(Memory, MemoryWithoutPusDrawsToTheNearestNode) {
  topology::RawMachine raw;
  raw.reader = "test";
  const std::uint32_t root = raw.add(Kind::kMachine, topology::kNone, topology::kNone);
  std::uint32_t pu = 0;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t node = raw.add(Kind::kNode, root, topology::kNone);
    ASSERT_TRUE(raw.nodes.push({node, i, 1 << 30, true, ""}));
    for (int k = 0; k < 2; ++k) raw.add(Kind::kPu, node, pu++);
  }
  ASSERT_TRUE(raw.nodes.push({root, 2, 1 << 30, true, ""}));  // beside both
  topology::Error error;
  World world(MachinePtr{topology::build_machine(raw, nullptr, &error)}, "memory");
  const Machine& m = world.machine();
  ASSERT_EQ(m.n_nodes, 3u);
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& team = simulation.team(nullptr, 2, 10);
  for (SimThread& thread : simulation.threads()) memory.attach(thread, 2, kMiB);
  world.engine().wake(team, 0);
  world.engine().next(3);
  std::vector<std::uint32_t> nodes;
  for (const SimThread& thread : simulation.threads()) nodes.push_back(node_of(m, thread));
  EXPECT_THAT(nodes, testing::ElementsAre(0, 0));
}

TEST(Memory, KeepsTheLastDistributionUnlessSomethingSpeaksAgainstIt) {
  for (const auto& [there, elsewhere, stays] :
       {std::tuple{0u, 0u, true}, {9u, 10u, true}, {10u, 0u, true}, {5u, 10u, false}}) {
    SCOPED_TRACE(there);
    World world(symmetric(4, 1, 2, 2), "memory");
    const Machine& m = world.machine();
    Simulation simulation(world, 100);
    Attached memory(world);
    sched::NestedBubble& team = simulation.team(nullptr, 4, 10);
    for (SimThread& thread : simulation.threads()) {
      thread.figures.last_domain = m.pu(12 - thread.number).id;  // of node 2
      if (there != 0) memory.attach(thread, 2, there * kMiB);
      if (elsewhere != 0) memory.attach(thread, 1, elsewhere * kMiB);
    }
    team.figures.last_domain = domain_of(m, 2).id;
    world.engine().wake(team, 0);
    world.engine().next(0);
    for (const SimThread& thread : simulation.threads()) {
      EXPECT_EQ(node_of(m, thread), stays ? 2u : 1u);
      // On the very PU.
      if (stays) {
        EXPECT_EQ(m.domain_array[thread.booked_domain].first_pu, 12 - thread.number);
      }
    }
  }
}

TEST(Memory, GhostsGoWhereTheirBubblesMemoryIs) {
  const MachinePtr machine = symmetric(4, 1, 2, 1);
  policies::EntityView view{};
  std::atomic<std::uint64_t> footprint[4] = {0, 0, kMiB, 0};
  view.kind = sched::EntityKind::kBubble;
  view.parent = view.first_child = view.last_domain = policies::kNone;
  view.footprint = footprint;
  for (const std::uint32_t ghosts : {2u, 8u, 1'000'003u}) {
    view.ghosts = view.pieces = view.width = ghosts;
    view.load = view.content = view.ghosts * policies::kLoadUnit;
    policies::draw::Places places;
    ASSERT_TRUE(places.set(*machine, nullptr));
    policies::draw::Scratch scratch;
    policies::PlacementList answer;
    ASSERT_TRUE(policies::draw::distribute({{machine.get(), nullptr, 25}, 133, &places},
                                           {{&view, 1, 1}, 0, nullptr}, &scratch, &answer));
    std::vector<std::uint32_t> per_node(4);
    for (std::uint32_t i = 0; i < answer.size(); ++i) {
      per_node[machine->node_of_pu(machine->domain_array[answer[i].domain].first_pu)] +=
          std::max(answer[i].ghosts, answer[i].ghosts == 0 ? ghosts : 0);
    }
    std::uint64_t sum = 0;
    for (const std::uint32_t n : per_node) sum += n;
    EXPECT_EQ(sum, ghosts);
    EXPECT_EQ(*std::max_element(per_node.begin(), per_node.end()), per_node[2]);
    if (ghosts > 2) {
      EXPECT_NEAR(per_node[2], ghosts * 133.0 / 400, 1);
    } else {
      EXPECT_EQ(per_node[2], 2u);
    }
    EXPECT_LT(scratch.steps, 3000u);  // not one by one
    scratch.release();
    answer.release();
    places.release();
  }
}

TEST(Memory, EveryThreadHasOnePlaceWhateverTheTree) {
  // The engine refuses answers that are not so, and says it; then everything would burst where it is.
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    World world(any_machine(seed), seed % 4 == 0 ? "memory@machine,cache@node" : "memory");
    const Machine& m = world.machine();
    std::mt19937 random(seed);
    Simulation simulation(world, 50);
    Attached memory(world);
    simulation.bubble(nullptr);
    for (std::uint32_t i = 1; i < 40; ++i) {
      sched::NestedBubble& bubble = simulation.bubble(&simulation.bubbles()[random() % i]);
      if (random() % 3 == 0) bubble.relation = static_cast<sched::Relation>(random() % 7);
      if (random() % 3 == 0) memory.attach(bubble, random() % m.n_nodes, random() % (9 * kMiB));
    }
    std::uint64_t work = 0;
    for (std::uint32_t i = 0; i < 3 * m.n_pus; ++i) {
      SimThread& thread =
          simulation.thread(simulation.bubbles()[random() % 40], 1 + random() % 200);
      work += thread.work;
      for (std::uint32_t k = random() % 4; k > 0; --k)
        memory.attach(thread, random() % m.n_nodes, random() % (9 * kMiB));
    }
    std::uint64_t done = 0;
    simulation.look = [&](std::uint64_t time) {
      for (std::uint32_t pu = 0; pu < m.n_pus; ++pu)
        done += simulation.on(pu) != nullptr ? time : 0;
    };
    world.engine().wake(simulation.bubbles()[0], 0);
    testing::internal::CaptureStderr();
    simulation.run();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(done, work);
  }
}

TEST(Memory, OnlyTheNodesAreItsOwnBesideCache) {
  World world(symmetric(2, 2, 2, 1), "memory@machine,null@node");
  const Machine& m = world.machine();
  Simulation simulation(world, 100);
  Attached memory(world);
  sched::NestedBubble& root = simulation.team(nullptr, 4, 10);
  for (SimThread& thread : simulation.threads()) memory.attach(thread, thread.number % 2, kMiB);
  world.engine().wake(root, 0);
  world.engine().next(0);
  for (const SimThread& thread : simulation.threads())
    EXPECT_EQ(thread.booked_domain, domain_of(m, thread.number % 2).id);
}

TEST(Memory, CostsWhatItSays) {
  double least = 1e9;
  double most = 0;
  const MachinePtr machine = symmetric(8, 2, 4, 2);
  policies::draw::Places places;
  ASSERT_TRUE(places.set(*machine, nullptr));
  for (const std::uint32_t threads : {1000u, 10'000u, 100'000u}) {
    std::vector<policies::EntityView> view(1 + threads);
    std::vector<std::atomic<std::uint64_t>> bytes(std::size_t{threads} * 8);
    view[0].kind = sched::EntityKind::kBubble;
    view[0].parent = view[0].last_domain = policies::kNone;
    view[0].first_child = 1;
    view[0].n_children = view[0].pieces = view[0].width = threads;
    view[0].load = view[0].content = threads * policies::kLoadUnit;
    for (std::uint32_t i = 0; i < threads; ++i) {
      policies::EntityView& e = view[1 + i];
      e.kind = sched::EntityKind::kThread;
      e.parent = 0;
      e.last_domain = e.first_child = policies::kNone;
      e.pieces = e.width = 1;
      e.load = policies::kLoadUnit;
      bytes[std::size_t{i} * 8 + i * 7 % 8] = kMiB + i;
      e.footprint = &bytes[std::size_t{i} * 8];
    }
    policies::draw::Scratch scratch;
    policies::PlacementList answer;
    ASSERT_TRUE(policies::draw::distribute(
        {{machine.get(), nullptr, 25}, 133, &places},
        {{view.data(), static_cast<std::uint32_t>(view.size()), 1}, 0, nullptr}, &scratch,
        &answer));
    EXPECT_EQ(answer.size(), threads);
    const double each = static_cast<double>(scratch.steps) / threads / 8;
    least = std::min(least, each);
    most = std::max(most, each);
    scratch.release();
    answer.release();
  }
  places.release();
  EXPECT_LT(most, 16);
  EXPECT_LT(most, 2 * least);
}

TEST(Memory, RefusesWhatIsNoLimit) {
  const MachinePtr machine = symmetric(1, 1, 2, 1);
  for (const char* text : {"memory:99", "memory:much", "memory:-1", "memory:10001"}) {
    policies::PolicyPlan plan;
    topology::Error error;
    EXPECT_FALSE(policies::make_plan(text, *machine, &plan, &error)) << text;
    EXPECT_THAT(error.text, HasSubstr("limit")) << text;
  }
}

}  // namespace
