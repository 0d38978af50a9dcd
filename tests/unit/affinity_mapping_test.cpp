// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mappings on invented machines: threads that share come together, nobody moves for noise, and who is well placed stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "affinity/mapping.h"
#include "invented_machine.h"

namespace bosk::affinity {
namespace {

using test::MachinePtr;
using topology::Domain;
using topology::Machine;

SharingMatrix pairs_at_distance(uint32_t threads, uint32_t distance, uint32_t weight) {
  SharingMatrix matrix(threads);
  for (uint32_t t = 0; t + distance < threads; ++t)
    if (t / distance % 2 == 0) matrix.add(t, t + distance, weight);
  return matrix;
}

SharingMatrix ring(uint32_t threads, uint32_t weight) {
  SharingMatrix matrix(threads);
  for (uint32_t t = 0; t < threads; ++t) matrix.add(t, (t + 1) % threads, weight);
  return matrix;
}

/// Every pair alike but for what counting by chance makes of it.
SharingMatrix by_chance(uint32_t threads, double mean, uint32_t seed) {
  std::mt19937 random(seed);
  std::poisson_distribution<uint32_t> events(mean);
  SharingMatrix matrix(threads);
  for (uint32_t a = 0; a < threads; ++a)
    for (uint32_t b = 0; b < a; ++b) matrix.add(a, b, events(random));
  return matrix;
}

Placement in_order(uint32_t threads, uint32_t pus) {
  Placement placement(threads);
  for (uint32_t t = 0; t < threads; ++t) placement[t] = t % pus;
  return placement;
}

Placement shuffled(uint32_t threads, uint32_t pus, uint32_t seed) {
  Placement placement = in_order(threads, pus);
  std::shuffle(placement.begin(), placement.end(), std::mt19937(seed));
  return placement;
}

/// Each domain has its share of the threads, up to what rounding at each level may add.
void expect_balance(const Placement& placement, const Machine& machine) {
  for (const Domain& domain : machine.domains()) {
    const auto threads = static_cast<uint64_t>(
        std::ranges::count_if(placement, [&](uint32_t pu) { return domain.contains_pu(pu); }));
    const uint64_t share = (placement.size() * domain.n_pus() + machine.n_pus - 1) / machine.n_pus;
    EXPECT_LE(threads, share + (domain.is_pu() ? 0 : 1)) << "domain " << domain.id;
  }
}

/// Pairs and one thread more than go evenly: exchanging both of a pair that is cut helps nothing, and was all that was tried.
TEST(Mapping, PairsAreNotCutWhenOneThreadIsOver) {
  const MachinePtr machine = test::symmetric(4, 1, 4, 1);
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint32_t> thread(15);
    std::iota(thread.begin(), thread.end(), 0);
    std::ranges::shuffle(thread, random);
    SharingMatrix matrix(15);
    for (size_t pair = 0; pair < 7; ++pair)
      matrix.add(thread[2 * pair], thread[2 * pair + 1], 50 + random() % 500);
    for (int noise = round % 3 * 15; noise > 0; --noise)
      matrix.add(random() % 15, random() % 15, 1 + random() % 6);
    const Placement placement = map_by_tree(strongest_sharing(matrix), *machine);
    for (size_t pair = 0; pair < 7; ++pair)
      EXPECT_EQ(machine->node_of_pu(placement[thread[2 * pair]]),
                machine->node_of_pu(placement[thread[2 * pair + 1]]))
          << "round " << round;
  }
}

TEST(SharingCost, GrowsOutwards) {
  const MachinePtr machine = test::symmetric(2, 2, 2, 2);
  EXPECT_EQ(sharing_cost(*machine, 3, 3), 0U);
  const uint32_t core = sharing_cost(*machine, 0, 1);
  const uint32_t cache = sharing_cost(*machine, 0, 2);
  const uint32_t node = sharing_cost(*machine, 0, 4);
  const uint32_t away = sharing_cost(*machine, 0, 8);
  EXPECT_LT(0U, core);
  EXPECT_LT(core, cache);
  EXPECT_LT(cache, node);
  EXPECT_LT(node, away);
  EXPECT_EQ(sharing_cost(*machine, 15, 0), away);
}

TEST(SharingGraph, KeepsTheStrongestPartnersFromBothEnds) {
  SharingMatrix matrix(5);
  for (uint32_t t = 1; t < 5; ++t) matrix.add(0, t, 10 * t);
  matrix.add(1, 2, 1);
  const SharingGraph graph = strongest_sharing(matrix, 1);
  ASSERT_EQ(graph.threads(), 5U);
  EXPECT_EQ(graph.of(0).size(), 4U) << "1 to 4 have chosen it";
  ASSERT_EQ(graph.of(1).size(), 1U);
  EXPECT_EQ(graph.of(1)[0].thread, 0U);
  EXPECT_EQ(graph.of(1)[0].weight, 10U);
  for (uint32_t t = 0; t < 5; ++t)
    for (const auto& edge : graph.of(t))
      EXPECT_TRUE(std::ranges::any_of(graph.of(edge.thread), [&](const auto& back) {
        return back.thread == t && back.weight == edge.weight;
      }));
}

TEST(Mapping, FarPairsComeTogether) {
  const MachinePtr machine = test::symmetric(4, 2, 2, 1);
  const SharingMatrix matrix = pairs_at_distance(16, 8, 1000);
  const SharingGraph graph = strongest_sharing(matrix);
  const char* why = nullptr;
  for (const Placement& placement :
       {map_by_tree(graph, *machine), map_by_scotch(graph, *machine, &why)}) {
    ASSERT_EQ(placement.size(), 16U) << why;
    expect_balance(placement, *machine);
    for (uint32_t t = 0; t < 8; ++t)
      EXPECT_EQ(sharing_cost(*machine, placement[t], placement[t + 8]),
                sharing_cost(*machine, 0, 1));
  }
  const Proposal proposal = propose(matrix, *machine, in_order(16, 16));
  EXPECT_TRUE(proposal.is_worth);
  EXPECT_GT(proposal.gain(), .5);
}

TEST(Mapping, NobodyMovesForNoise) {
  for (const auto& [nodes, cores] : {std::pair{1U, 16U}, {4U, 4U}, {8U, 8U}}) {
    const MachinePtr machine = test::symmetric(nodes, 1, cores, 1);
    const uint32_t threads = machine->n_pus;
    for (uint32_t seed = 0; seed < 40; ++seed)
      for (const double mean : {.1, 1.0, 30.0, 1000.0}) {
        const Proposal proposal =
            propose(by_chance(threads, mean, seed), *machine, shuffled(threads, threads, seed));
        EXPECT_FALSE(proposal.is_worth)
            << threads << " threads, mean " << mean << ", gain " << proposal.gain();
      }
  }
}

TEST(Mapping, FewEventsOfAClearPatternAreEnough) {
  const MachinePtr machine = test::symmetric(4, 1, 4, 1);
  SharingMatrix matrix = by_chance(16, .5, 1);
  for (uint32_t t = 0; t < 8; ++t) matrix.add(t, t + 8, 30);
  EXPECT_TRUE(propose(matrix, *machine, in_order(16, 16)).is_worth);
}

TEST(Mapping, WhoIsWellPlacedStays) {
  for (const auto& [nodes, cores] : {std::pair{4U, 4U}, {3U, 5U}, {8U, 8U}}) {
    const MachinePtr machine = test::symmetric(nodes, 1, cores, 1);
    const uint32_t threads = machine->n_pus;
    const Proposal proposal = propose(ring(threads, 500), *machine, in_order(threads, threads));
    EXPECT_FALSE(proposal.is_worth);
    EXPECT_LE(proposal.cost_then, 1.01 * proposal.cost_now) << nodes << " × " << cores;
  }
}

TEST(Mapping, GroupsThatAreOnOtherNodesAlreadyDoNotMove) {
  // Groups of four, each together, on nodes in another order than anybody would choose, but for two threads.
  const MachinePtr machine = test::symmetric(4, 1, 4, 1);
  SharingMatrix matrix(16);
  for (uint32_t a = 0; a < 16; ++a)
    for (uint32_t b = 0; b < a; ++b)
      if (a / 4 == b / 4) matrix.add(a, b, 1000);
  Placement present(16);
  for (uint32_t t = 0; t < 16; ++t) present[t] = (t + 8) % 16;
  Proposal proposal = propose(matrix, *machine, present);
  EXPECT_EQ(proposal.moves, 0U);
  EXPECT_FALSE(proposal.is_worth);
  std::swap(present[3], present[4]);
  proposal = propose(matrix, *machine, present);
  EXPECT_EQ(proposal.moves, 2U);
  EXPECT_TRUE(proposal.is_worth);
}

TEST(Mapping, FewThreadsUseAllNodes) {
  const MachinePtr machine = test::symmetric(4, 1, 8, 1);
  const Placement placement =
      map_by_tree(strongest_sharing(pairs_at_distance(8, 4, 100)), *machine);
  expect_balance(placement, *machine);
  std::set<uint32_t> nodes;
  for (const uint32_t pu : placement) nodes.insert(machine->node_of_pu(pu));
  EXPECT_EQ(nodes.size(), 4U);
  for (uint32_t t = 0; t < 4; ++t)
    EXPECT_EQ(machine->node_of_pu(placement[t]), machine->node_of_pu(placement[t + 4]));
}

TEST(Mapping, AnyNumberOfThreadsOnAnyMachine) {
  std::mt19937 random(5);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const MachinePtr machine = test::lopsided(seed);
    const auto threads = static_cast<uint32_t>(random() % (3 * machine->n_pus + 1));
    const SharingMatrix matrix = threads < 2 ? SharingMatrix(threads) : by_chance(threads, 3, seed);
    const SharingGraph graph = strongest_sharing(matrix, 1 + seed % 8);
    Placement placement = map_by_tree(graph, *machine);
    ASSERT_EQ(placement.size(), threads);
    expect_balance(placement, *machine);
    const double cost = total_cost(graph, *machine, placement);
    const Placement present = shuffled(threads, machine->n_pus, seed);
    keep_in_place(&placement, present, *machine, graph);
    EXPECT_LE(total_cost(graph, *machine, placement), cost + .5);
    expect_balance(placement, *machine);
  }
}

TEST(Mapping, NobodyKnowsWhereTheyAre) {
  const MachinePtr machine = test::symmetric(2, 1, 2, 1);
  const Proposal proposal = propose(pairs_at_distance(4, 2, 100), *machine, Placement(4, kNoPu));
  EXPECT_EQ(proposal.cost_now, 0);
  EXPECT_FALSE(proposal.is_worth);
  EXPECT_EQ(proposal.gain(), 0);
}

TEST(Mapping, AThousandThreadsInARing) {
  const MachinePtr machine = test::symmetric(32, 1, 32, 1);
  SharingMatrix matrix(1024);
  for (uint32_t t = 0; t < 1024; ++t)
    for (uint32_t d = 1; d <= 16; ++d) matrix.add(t, (t + d) % 1024, d == 1 ? 1000 : 10);
  const SharingGraph graph = strongest_sharing(matrix);
  const double best = total_cost(graph, *machine, in_order(1024, 1024));
  const Proposal proposal = propose(matrix, *machine, shuffled(1024, 1024, 1));
  EXPECT_TRUE(proposal.is_worth);
  EXPECT_LE(proposal.cost_then, 1.25 * best) << proposal.by;
  EXPECT_LE(total_cost(graph, *machine, map_by_tree(graph, *machine)), 1.4 * best);
}

TEST(Mapping, ScotchAndOurOwnAreWorthTheSame) {
  const MachinePtr machine = test::symmetric(4, 2, 8, 1);
  double ours = 0;
  double theirs = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    SharingMatrix matrix(64);
    for (int i = 0; i < 200; ++i)
      matrix.add(static_cast<uint32_t>(random() % 64), static_cast<uint32_t>(random() % 64),
                 1 + random() % 100);
    const SharingGraph graph = strongest_sharing(matrix);
    const char* why = nullptr;
    const Placement by_scotch = map_by_scotch(graph, *machine, &why);
    ASSERT_EQ(by_scotch.size(), 64U) << why;
    theirs += total_cost(graph, *machine, by_scotch);
    ours += total_cost(graph, *machine, map_by_tree(graph, *machine));
  }
  EXPECT_LE(ours, 1.1 * theirs);
}

TEST(Mapping, ScotchSaysWhyNot) {
  const char* why = nullptr;
  const MachinePtr machine = test::symmetric(2, 1, 2, 1);
  EXPECT_TRUE(map_by_scotch(strongest_sharing(SharingMatrix(4)), *machine, &why).empty());
  EXPECT_STREQ(why, "nothing is shared");
  const MachinePtr uneven =
      test::invent({topology::Kind::kNode, topology::Kind::kPu},
                   [n = 0](size_t level) mutable { return level == 0 ? 2U : 2U + n++; });
  EXPECT_TRUE(map_by_scotch(strongest_sharing(ring(5, 9)), *uneven, &why).empty());
  EXPECT_STREQ(why, "the machine is not regular");
}

}  // namespace
}  // namespace bosk::affinity
