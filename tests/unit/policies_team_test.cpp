// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where members of teams are at home: the closed form against counting, on invented machines.
#include "policies/team_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "invented_machine.h"
#include "policies/policy.h"
#include "policy_harness.h"

#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

using namespace bosk;
using namespace bosk::test;
using policies::TeamPlacement;
using policies::TeamRange;

void check_even(std::uint32_t seed) {
  const MachinePtr machine = any_machine(seed);
  std::mt19937 random(seed);
  const Domain& scope =
      machine->domain_array[random() % 2 == 0 ? 0 : random() % machine->n_domains];
  const topology::Level* bottom =
      random() % 3 == 0 ? machine->level(random() % 2 == 0 ? Kind::kNode : Kind::kCore) : nullptr;
  const std::uint32_t pu = scope.first_pu + static_cast<std::uint32_t>(random() % scope.n_pus());
  const std::uint32_t members = random() % 2 == 0
                                    ? 1 + static_cast<std::uint32_t>(random() % (2 * scope.n_pus()))
                                    : 1 + static_cast<std::uint32_t>(random() % 5000);
  TeamPlacement team;
  team.set_even(*machine, scope.id, bottom, pu, members);

  const auto is_bottom = [&](const Domain& d) {
    return d.is_pu() || (bottom != nullptr && policies::at_or_below(*machine, *bottom, d));
  };
  std::vector<std::vector<std::uint32_t>> below(machine->n_domains);
  for (std::uint32_t i = 0; i < members; ++i) {
    const std::uint32_t home = team.domain_of(i);
    ASSERT_TRUE(is_below(*machine, home, scope.id));
    const Domain& h = machine->domain_array[home];
    // A bottom is the highest domain that is one.
    ASSERT_TRUE(h.id == scope.id || !is_bottom(*h.parent));
    for (const Domain* d = &h; d != nullptr; d = d->parent) below[d->id].push_back(i);
  }
  ASSERT_TRUE(machine->domain_array[team.domain_of(0)].contains_pu(pu));

  for (const Domain& d : machine->domains()) {
    const std::vector<std::uint32_t>& mine = below[d.id];
    const TeamRange range = team.members_below(d.id);
    ASSERT_EQ(range.count, mine.size()) << "domain " << d.id;
    if (!mine.empty()) {
      ASSERT_EQ(range.first, mine.front());
      ASSERT_EQ(mine.back() - mine.front() + 1, mine.size()) << "not one range";
    }
    if (!is_below(*machine, d.id, scope.id)) continue;
    // A home above the bottom is its member's alone.
    if (!is_bottom(d)) {
      std::uint32_t here = 0;
      for (const std::uint32_t i : mine) here += team.domain_of(i) == d.id;
      ASSERT_TRUE(here == 0 || (here == 1 && mine.size() == 1));
    }
    // Each domain has its share, up to one member, unless homes end above it.
    if (d.id == scope.id || (below[d.parent->id].size() > 1 && !is_bottom(*d.parent))) {
      const double share = static_cast<double>(members) * d.n_pus() / scope.n_pus();
      ASSERT_LT(std::abs(static_cast<double>(mine.size()) - share), 1.0);
    }
  }

  // Ranges cover all members without gap or overlap.
  std::uint32_t next = 0;
  team.for_each_range([&](const TeamRange& range) {
    ASSERT_EQ(range.first, next);
    ASSERT_GT(range.count, 0u);
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
      ASSERT_EQ(team.domain_of(i), range.domain);
    next = range.first + range.count;
  });
  ASSERT_EQ(next, members);
}

TEST(TeamPlacement, TheEvenFormIsFair) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(check_even(seed));
  }
}

#ifdef BOSK_HAVE_RAPIDCHECK
RC_GTEST_PROP(TeamPlacementProperty, TheEvenFormIsFair, ()) {
  check_even(*rc::gen::inRange<std::uint32_t>(0, 1u << 24));
  RC_ASSERT(!testing::Test::HasFailure());
}
#endif

TEST(TeamPlacement, FewMembersGetLargeHomes) {
  const MachinePtr machine = symmetric(4, 1, 4, 2);
  TeamPlacement team;
  team.set_even(*machine, 0, nullptr, 17, 4);  // the opener is in node 2
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(team.domain_of(i), machine->domain_of_pu((16 + 8 * i) % 32, Kind::kNode)->id);
}

TEST(TeamPlacement, AMillionMembersNeedNoMemory) {
  const MachinePtr machine = symmetric(64, 2, 4, 2);
  TeamPlacement team;
  team.set_even(*machine, 0, nullptr, 0, (1u << 20) - 1);
  EXPECT_EQ(team.domain_of(0), machine->pu(0).id);
  EXPECT_EQ(team.domain_of((1u << 20) - 2), machine->pu(machine->n_pus - 1).id);
  EXPECT_EQ(team.members_below(0).count, (1u << 20) - 1);
}

TEST(TeamPlacement, TogetherIsOneDomain) {
  const MachinePtr machine = symmetric(2, 1, 2, 1);
  TeamPlacement team;
  const Domain& node = machine->root().first_child[1];
  team.set_together(*machine, node.id, 7);
  EXPECT_EQ(team.domain_of(6), node.id);
  EXPECT_EQ(team.members_below(0).count, 7u);
  EXPECT_EQ(team.members_below(node.id).count, 7u);
  EXPECT_EQ(team.members_below(node.first_child->id).count, 0u);
  EXPECT_EQ(team.members_below(machine->root().first_child[0].id).count, 0u);
}

TEST(TeamPlacement, ListsAreJoinedAndSearched) {
  const MachinePtr machine = symmetric(2, 1, 2, 1);
  const std::uint32_t a = machine->pu(0).id;
  const std::uint32_t b = machine->pu(3).id;
  TeamPlacement team;
  team.set_ranges(*machine, 10);
  for (const auto& [count, domain] : {std::pair{2u, a}, {1u, a}, {4u, b}, {0u, a}, {3u, a}})
    ASSERT_TRUE(team.append(count, domain));
  const std::uint32_t expected[] = {a, a, a, b, b, b, b, a, a, a};
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(team.domain_of(i), expected[i]);
  int ranges = 0;
  team.for_each_range([&](const TeamRange&) { ++ranges; });
  EXPECT_EQ(ranges, 3);
  EXPECT_EQ(team.members_below(a).count, 3u);
  EXPECT_EQ(team.members_below(a, 3).first, 7u);
  EXPECT_EQ(team.members_below(a, 8).count, 2u);
  EXPECT_EQ(team.members_below(machine->pu(1).id).count, 0u);
  team.release();
}

// ---- what acts by default, against cache inside of the nodes

struct Measured {
  double pairs_under_one_cache = 0;  ///< of neighbours in nested teams, in percent
  double fullest = 0;                ///< members on the fullest PU over the mean
};

/// Level-1 members, at home or on the workers of their number, each of which opens a team of `inner`.
Measured measure_nest(World& world, std::uint32_t outer, std::uint32_t inner, bool at_home) {
  const Machine& m = world.machine();
  const topology::Level& caches = *m.level(Kind::kL3);
  TeamPlacement homes, team;
  world.engine().place_team({.members = outer}, &homes);
  std::vector<double> on_pu(m.n_pus);
  std::uint32_t near = 0;
  for (std::uint32_t i = 0; i < outer; ++i) {
    world.engine().place_team(
        {.members = inner,
         .opener_domain = homes.domain_of(i),
         .opener_pu = at_home ? m.domain_array[homes.domain_of(i)].first_pu : i % m.n_pus},
        &team);
    for (std::uint32_t k = 0; k < inner; ++k) {
      const Domain& home = m.domain_array[team.domain_of(k)];
      for (std::uint32_t pu = home.first_pu; pu <= home.last_pu; ++pu)
        on_pu[pu] += 1.0 / home.n_pus();
      if (k == 0) continue;
      const Domain& before = m.domain_array[team.domain_of(k - 1)];
      const std::uint32_t cache = caches.of_pu[home.first_pu];
      near += cache == caches.of_pu[home.last_pu] && cache == caches.of_pu[before.first_pu] &&
              cache == caches.of_pu[before.last_pu];
    }
  }
  homes.release();
  team.release();
  Measured measured;
  measured.pairs_under_one_cache = 100.0 * near / (outer * (inner - 1));
  measured.fullest = *std::max_element(on_pu.begin(), on_pu.end()) * m.n_pus / (outer * inner);
  return measured;
}

/// Issue 5 asks for cache within spread where it measures better. It does not: spread's homes are small
/// enough that teammates share a cache as often, while cache, which begins at whole nodes, crowds teams of
/// several openers of a node around the same PUs. docs/policies.md tells the figures.
TEST(DefaultPlan, SpreadAloneIsAsNearAndLessCrowdedThanCacheInsideOfNodes) {
  const char* const plans[] = {"spread", "spread@machine,cache@node"};
  double near[2] = {0, 0}, fullest[2] = {0, 0};
  int cases = 0;
  for (const std::uint32_t nodes : {2, 4})
    for (const std::uint32_t caches : {2, 4})
      for (const std::uint32_t cores : {2u, 4u})
        for (const std::uint32_t inner : {2u, 3u, cores, caches * cores}) {
          const std::uint32_t pus = nodes * caches * cores;
          for (const std::uint32_t outer : {nodes, nodes * caches, pus / 2, pus})
            for (const bool at_home : {false, true}) {
              ++cases;
              for (int p : {0, 1}) {
                World world(symmetric(nodes, caches, cores, 1), plans[p]);
                const Measured found = measure_nest(world, outer, inner, at_home);
                near[p] += found.pairs_under_one_cache;
                fullest[p] += found.fullest;
              }
            }
        }
  for (int p : {0, 1})
    printf("%-26s neighbours under one cache %.1f %%, fullest PU %.2f of the mean\n", plans[p],
           near[p] / cases, fullest[p] / cases);
  EXPECT_GT(near[0] / cases, near[1] / cases - 3);
  EXPECT_LT(fullest[0], fullest[1]);
}

TEST(TeamAroundSeats, IsTheLargestDomainForEach) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    const MachinePtr machine = any_machine(seed);
    std::mt19937 random(seed);
    const std::uint32_t members = 1 + static_cast<std::uint32_t>(random() % machine->n_pus);
    std::vector<std::uint32_t> seat(members);
    for (std::uint32_t i = 0; i < members; ++i)
      seat[i] = static_cast<std::uint32_t>(std::uint64_t{i} * machine->n_pus / members);
    std::shuffle(seat.begin(), seat.end(), random);
    const auto alone = [&](const Domain& d) {
      return std::count_if(seat.begin(), seat.end(),
                           [&](std::uint32_t pu) { return d.contains_pu(pu); }) == 1;
    };
    TeamPlacement team;
    ASSERT_TRUE(team.set_around(*machine, seat.data(), members));
    ASSERT_EQ(team.members(), members);
    for (std::uint32_t i = 0; i < members; ++i) {
      const Domain& home = machine->domain_array[team.domain_of(i)];
      ASSERT_EQ(home.id, policies::domain_around_seat(*machine, members, seat[i]).id);
      ASSERT_TRUE(home.contains_pu(seat[i]));
      ASSERT_TRUE(alone(home));
      ASSERT_TRUE(home.parent == nullptr || !alone(*home.parent));
    }
    team.release();
  }
}

}  // namespace
