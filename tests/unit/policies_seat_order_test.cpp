// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who sits where, by memory, on invented machines.
#include "policies/memory/seat_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <vector>

#include "invented_machine.h"
#include "sched/seats.h"

namespace {

using namespace bosk;
using namespace bosk::test;

/// What members have where, in bytes: a row for each member, a column for each node. An empty row: nothing is known.
class Attached {
 public:
  explicit Attached(const std::vector<std::vector<std::uint64_t>>& bytes)
      : rows_(bytes.size()), on_(bytes.size()) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      rows_[i] = std::vector<std::atomic<std::uint64_t>>(bytes[i].size());
      for (std::size_t node = 0; node < bytes[i].size(); ++node) rows_[i][node] = bytes[i][node];
      on_[i] = bytes[i].empty() ? nullptr : rows_[i].data();
    }
    footprints.members = on_.data();
    footprints.n_members = static_cast<std::uint32_t>(on_.size());
  }
  policies::TeamFootprints footprints;

 private:
  std::vector<std::vector<std::atomic<std::uint64_t>>> rows_;
  std::vector<std::atomic<policies::TeamFootprints::OnNodes>> on_;
};

std::vector<std::uint32_t> in_order(std::uint32_t members) {
  std::vector<std::uint32_t> part_of(members);
  std::iota(part_of.begin(), part_of.end(), 0);
  return part_of;
}

/// The parts after order_seats(), which must say whether it changed them.
std::vector<std::uint32_t> ordered(const Machine& machine, const Attached& attached,
                                   std::vector<std::uint32_t> part_of) {
  const std::vector<std::uint32_t> before = part_of;
  const bool changed = policies::order_seats(
      machine, attached.footprints, static_cast<std::uint32_t>(part_of.size()), 0, part_of.data());
  EXPECT_EQ(changed, part_of != before);
  return part_of;
}

using Parts = std::vector<std::uint32_t>;

TEST(SeatOrder, GoesWhereTheMemoryIs) {
  const MachinePtr machine = symmetric(4, 1, 4, 1);
  const Attached next({{0, 9, 0, 0}, {0, 0, 9, 0}, {0, 0, 0, 9}, {9, 0, 0, 0}});
  EXPECT_EQ(ordered(*machine, next, in_order(4)), (Parts{1, 2, 3, 0}));
  // Back again.
  const Attached own({{9, 0, 0, 0}, {0, 9, 0, 0}, {0, 0, 9, 0}, {0, 0, 0, 9}});
  EXPECT_EQ(ordered(*machine, own, {1, 2, 3, 0}), (Parts{0, 1, 2, 3}));
}

TEST(SeatOrder, StaysWhereItIsAsGood) {
  const MachinePtr machine = symmetric(4, 1, 4, 1);
  const Attached everywhere({{5, 5, 5, 5}, {5, 5, 5, 5}, {5, 5, 5, 5}, {5, 5, 5, 5}});
  EXPECT_EQ(ordered(*machine, everywhere, {2, 3, 1, 0}), (Parts{2, 3, 1, 0}));
  const Attached nothing({{}, {}, {}, {}});
  EXPECT_EQ(ordered(*machine, nothing, in_order(4)), in_order(4));
  // All of them on one node: only who sits there could have it near.
  const Attached one({{9, 0, 0, 0}, {9, 0, 0, 0}, {9, 0, 0, 0}, {9, 0, 0, 0}});
  EXPECT_EQ(ordered(*machine, one, in_order(4)), in_order(4));
  // Two per cent more near is not worth it.
  const Attached hardly({{50, 52, 0, 0}, {50, 50, 0, 0}, {0, 0, 9, 0}, {0, 0, 0, 9}});
  EXPECT_EQ(ordered(*machine, hardly, in_order(4)), in_order(4));
}

TEST(SeatOrder, StaysWhereTooLittleIsGained) {
  const MachinePtr machine = symmetric(2, 1, 4, 1);
  const Attached attached({{0, 500}, {500, 0}});
  Parts part_of = in_order(2);
  EXPECT_FALSE(policies::order_seats(*machine, attached.footprints, 2, 1001, part_of.data()));
  EXPECT_EQ(part_of, in_order(2));
  EXPECT_TRUE(policies::order_seats(*machine, attached.footprints, 2, 1000, part_of.data()));
  EXPECT_EQ(part_of, (Parts{1, 0}));
}

TEST(SeatOrder, FindsWhatGreedDoesNot) {
  const MachinePtr machine = symmetric(2, 1, 4, 1);
  // Who has most would take node 0 and leave the other one with nothing.
  const Attached attached({{100, 99}, {98, 0}});
  EXPECT_EQ(ordered(*machine, attached, in_order(2)), (Parts{1, 0}));
}

TEST(SeatOrder, OfMembersOfOneNodeStaysWithinIt) {
  // Two members to a node: 0 and 1 belong on node 1, 3 on node 0, and 2 has nothing.
  const MachinePtr machine = symmetric(2, 1, 4, 1);
  const Attached attached({{0, 9}, {0, 9}, {}, {9, 0}});
  EXPECT_EQ(ordered(*machine, attached, in_order(4)), (Parts{2, 3, 0, 1}));
  // Only one of them has to go, for one.
  const Attached one({{0, 9}, {9, 0}, {0, 9}, {9, 0}});
  EXPECT_EQ(ordered(*machine, one, in_order(4)), (Parts{3, 1, 2, 0}));
}

TEST(SeatOrder, LeavesSmallMachinesAndTooManyMembersAlone) {
  const MachinePtr flat = symmetric(1, 1, 4, 1);
  const Attached there({{0}, {9}});
  EXPECT_EQ(ordered(*flat, there, in_order(2)), in_order(2));
  const MachinePtr machine = symmetric(2, 1, 1, 1);
  const Attached three({{0, 9}, {9, 0}, {9, 0}});
  EXPECT_EQ(ordered(*machine, three, in_order(3)), in_order(3));
}

std::uint64_t near_bytes(const Machine& machine, const Parts& part_of,
                         const std::vector<std::vector<std::uint64_t>>& bytes) {
  const auto members = static_cast<std::uint32_t>(part_of.size());
  std::uint64_t near = 0;
  for (std::uint32_t i = 0; i < members; ++i) {
    std::vector<bool> here(machine.n_nodes);
    for (std::uint32_t pu = part_of[i] * machine.n_pus / members;
         pu < (part_of[i] + 1) * machine.n_pus / members; ++pu)
      here[machine.node_of_pu(pu)] = true;
    for (std::uint32_t node = 0; node < bytes[i].size(); ++node)
      if (here[node]) near += bytes[i][node];
  }
  return near;
}

TEST(SeatOrder, IsAPermutationThatIsNeverWorse) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const MachinePtr machine =
        symmetric(1 + random() % 16, 1 + random() % 2, 1 + random() % 16, 1 + random() % 2);
    const std::uint32_t members = 1 + random() % machine->n_pus;
    std::vector<std::vector<std::uint64_t>> bytes(members);
    for (auto& row : bytes) {
      if (random() % 8 == 0) continue;
      row.resize(machine->n_nodes);
      row[random() % row.size()] = random() % 1000;
      row[random() % row.size()] += random() % 100;
    }
    Parts before = in_order(members);
    std::shuffle(before.begin(), before.end(), random);
    const Parts after = ordered(*machine, Attached(bytes), before);
    Parts sorted = after;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, in_order(members)) << "seed " << seed;
    if (after != before) {
      ASSERT_GT(near_bytes(*machine, after, bytes), near_bytes(*machine, before, bytes))
          << "seed " << seed;
    }
    // Once is enough: the second time nothing is left that would be worth it.
    ASSERT_EQ(ordered(*machine, Attached(bytes), after), after) << "seed " << seed;
  }
}

TEST(SeatOrder, OfAThousandMembersFindsTheOneThatHasAllNear) {
  const MachinePtr machine = symmetric(64, 1, 16, 1);
  const std::uint32_t members = 1024;
  std::mt19937 random(3);
  Parts wanted = in_order(members);
  std::shuffle(wanted.begin(), wanted.end(), random);
  std::vector<std::vector<std::uint64_t>> bytes(members, std::vector<std::uint64_t>(64));
  for (std::uint32_t i = 0; i < members; ++i) bytes[i][wanted[i] / 16] = 1000 + i;
  const Parts after = ordered(*machine, Attached(bytes), in_order(members));
  for (std::uint32_t i = 0; i < members; ++i) ASSERT_EQ(after[i] / 16, wanted[i] / 16);
}

}  // namespace
