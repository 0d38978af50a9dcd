// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which workers look through each other, and the reach of bubbles, on invented machines.
#include "sched/distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <tuple>
#include <vector>

#include "invented_machine.h"
#include "policy_harness.h"

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

using namespace bosk;
using namespace bosk::test;
using policies::TeamPlacement;
using sched::WorkerOrder;

std::vector<std::uint32_t> all_of(WorkerOrder order) {
  std::vector<std::uint32_t> workers;
  for (std::uint32_t worker; (worker = order.next()) != WorkerOrder::kEnd;) {
    workers.push_back(worker);
    if (workers.size() > 100'000) break;  // it never ends
  }
  EXPECT_EQ(order.next(), WorkerOrder::kEnd);
  return workers;
}

void expect_each_once(std::vector<std::uint32_t> workers, std::uint32_t count) {
  ASSERT_EQ(workers.size(), count);
  std::sort(workers.begin(), workers.end());
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(workers[i], i);
}

/// Against the tree: who is in the domain, then by the height of what is around both; and within one
/// such ring by PU, from the domain's end on, going round.
void check_order(std::uint32_t seed) {
  const MachinePtr machine = any_machine(seed);
  std::mt19937 random(seed);
  const std::uint32_t pus = machine->n_pus;
  const Domain& from = random() % 2 == 0 ? machine->pu(random() % pus)
                                         : machine->domain_array[random() % machine->n_domains];
  // Fewer workers than PUs, as many, more.
  const std::uint32_t counts[] = {1 + static_cast<std::uint32_t>(random() % pus), pus,
                                  pus + 1 + static_cast<std::uint32_t>(random() % (2 * pus))};
  for (const std::uint32_t count : counts) {
    const std::vector<std::uint32_t> order = all_of(WorkerOrder(*machine, from, count));
    ASSERT_NO_FATAL_FAILURE(expect_each_once(order, count));
    struct Place {
      std::uint32_t height, round, worker;
      bool operator<(const Place& o) const {
        return std::tie(height, round, worker) < std::tie(o.height, o.round, o.worker);
      }
    };
    std::vector<Place> model;
    for (std::uint32_t worker = 0; worker < count; ++worker) {
      const std::uint32_t pu = sched::pu_of_worker(*machine, worker);
      ASSERT_EQ(pu, worker % pus);
      const Domain& ring = machine->common_ancestor(from, machine->pu(pu));
      const bool inside = from.contains_pu(pu);
      model.push_back({inside ? 0u : ring.height + 1u,
                       inside ? pu : (pu + pus - from.last_pu - 1) % pus, worker});
    }
    // Going round inside the ring: PUs behind the domain, then those before it.
    std::sort(model.begin(), model.end());
    for (std::uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(order[i], model[i].worker) << "count " << count << " at " << i;
  }
}

TEST(WorkerOrder, IsByDistanceOnAnyMachine) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(check_order(seed));
  }
}

#ifdef BOSK_HAVE_RAPIDCHECK
RC_GTEST_PROP(WorkerOrderProperty, IsByDistanceOnAnyMachine, ()) {
  check_order(*rc::gen::inRange<std::uint32_t>(0, 1u << 24));
  RC_ASSERT(!testing::Test::HasFailure());
}
#endif

TEST(WorkerOrder, OfTheLargestMachine) {
  const MachinePtr machine = symmetric(64, 2, 4, 2);
  ASSERT_EQ(machine->n_pus, 1024u);
  for (std::uint32_t thief = 0; thief < 1024; thief += 31) {
    const std::vector<std::uint32_t> order =
        all_of(WorkerOrder(*machine, machine->pu(thief), 1024));
    ASSERT_NO_FATAL_FAILURE(expect_each_once(order, 1024));
    for (std::size_t i = 1; i < order.size(); ++i)
      ASSERT_LE(machine->distance(thief, order[i - 1]), machine->distance(thief, order[i]));
  }
}

TEST(WorkerOrder, ThievesOfDifferentNodesTurnToDifferentOnes) {
  const MachinePtr machine = symmetric(4, 1, 2, 1);
  EXPECT_EQ(all_of(WorkerOrder(*machine, machine->pu(3), 8)),
            (std::vector<std::uint32_t>{3, 2, 4, 5, 6, 7, 0, 1}));
  EXPECT_EQ(all_of(WorkerOrder(*machine, machine->pu(6), 8)),
            (std::vector<std::uint32_t>{6, 7, 0, 1, 2, 3, 4, 5}));
  // From a domain: who is at home there.
  EXPECT_EQ(all_of(WorkerOrder(*machine, *machine->domain_of_pu(4, Kind::kNode), 8)),
            (std::vector<std::uint32_t>{4, 5, 6, 7, 0, 1, 2, 3}));
}

TEST(WorkerOrder, WithoutAMachineIsByNumber) {
  EXPECT_EQ(all_of(WorkerOrder(3, 5)), (std::vector<std::uint32_t>{3, 4, 0, 1, 2}));
  EXPECT_EQ(all_of(WorkerOrder(0, 3)), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(all_of(WorkerOrder(9, 2)), (std::vector<std::uint32_t>{0, 1}));  // there were more once
  EXPECT_TRUE(all_of(WorkerOrder(0, 0)).empty());
}

TEST(Reach, IsTheDomainsPus) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const MachinePtr machine = any_machine(seed);
    for (const Domain& d : machine->domains()) {
      const std::uint64_t reach = sched::reach_of(d.first_pu, d.last_pu);
      std::uint32_t covered = 0;
      for (std::uint32_t pu = 0; pu < machine->n_pus; ++pu) {
        ASSERT_EQ(sched::reaches(reach, pu), d.contains_pu(pu));
        covered += sched::reaches(reach, pu);
        ASSERT_TRUE(sched::reaches(sched::kReachAll, pu));
      }
      ASSERT_EQ(covered, d.n_pus());
    }
  }
}

/// burst: nests of teams that are opened by members who stay where they belong. What is in one team
/// stays in it, there is a PU for each member unless the outer team has none either, and nothing is
/// below the bursting level.
void check_bursts(std::uint32_t seed) {
  static const char* const plans[] = {"burst", "burst:core", "burst:node", "burst:pu",
                                      "burst:machine"};
  World world(any_machine(seed), plans[seed % std::size(plans)]);
  const Machine& machine = world.machine();
  std::mt19937 random(seed);
  std::uint32_t home = 0;
  for (int level = 0; level < 6; ++level) {
    const Domain& outer = machine.domain_array[home];
    const std::uint32_t pu = outer.first_pu + static_cast<std::uint32_t>(random() % outer.n_pus());
    const std::uint32_t members =
        1 + static_cast<std::uint32_t>(random() % (1 + machine.n_pus / 2));
    TeamPlacement team;
    world.engine().place_team({members, nullptr, home, pu}, &team);
    ASSERT_TRUE(team.is_together());
    const Domain& scope = machine.domain_array[team.scope()];
    const std::uint64_t reach = sched::reach_of(scope.first_pu, scope.last_pu);
    ASSERT_TRUE(sched::reaches(reach, pu)) << "the opener's own worker";
    ASSERT_TRUE(is_below(machine, scope.id, outer.id));
    ASSERT_GE(scope.n_pus(), std::min(members, outer.n_pus()));
    for (std::uint32_t i = 0; i < members; i += 1 + members / 8)
      ASSERT_EQ(team.domain_of(i), scope.id);
    home = team.domain_of(static_cast<std::uint32_t>(random() % members));
    // The same question gives the same formula: that is what a team that opens again goes by.
    TeamPlacement again;
    world.engine().place_team({members, nullptr, outer.id, pu}, &again);
    ASSERT_TRUE(again.same_formula(team));
    world.engine().place_team({members + 1, nullptr, outer.id, pu}, &again);
    ASSERT_FALSE(again.same_formula(team));
  }
}

TEST(Reach, OfBurstContainsTheOpenerAndWhatItOpens) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(check_bursts(seed));
  }
}

}  // namespace
