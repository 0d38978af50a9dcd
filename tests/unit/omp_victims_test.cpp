// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which thieves look at queues of tasks, on invented machines.
#include "omp/victims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "invented_machine.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using omp::Victims;

struct Look {
  std::vector<std::uint32_t> order;
  std::uint64_t places_read = 0;
};

/// All of it, the last round apart. `owners`: the PU of each queue's owner.
Look look(const std::vector<std::uint32_t>& owners, std::uint32_t first, const Domain* thief) {
  Look result;
  Victims victims(static_cast<std::uint32_t>(owners.size()), first, thief);
  const auto pu_of = [&](std::uint32_t i) {
    ++result.places_read;
    return owners.at(i);
  };
  for (std::uint32_t i; (i = victims.next(pu_of)) != Victims::kEnd;) {
    result.order.push_back(i);
    if (result.order.size() > 2 * owners.size()) break;  // it never ends
  }
  EXPECT_EQ(victims.next(pu_of), Victims::kEnd);
  if (thief == nullptr) return result;
  // Going round, from where it began.
  EXPECT_EQ(result.order.size(), 2 * owners.size());
  result.order.resize(owners.size());
  return result;
}

TEST(Victims, NearestFirstOnAnyMachine) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const MachinePtr machine = any_machine(seed);
    std::mt19937 random(seed);
    const std::uint32_t count = random() % (2 * machine->n_pus + 3);
    std::vector<std::uint32_t> owners(count);
    for (std::uint32_t& pu : owners)
      pu = random() % 16 == 0 ? topology::kNone
                              : static_cast<std::uint32_t>(random() % machine->n_pus);
    const Domain& thief = machine->pu(random() % machine->n_pus);
    const std::uint32_t first = random() % (count + 2);
    const Look seen = look(owners, first, &thief);
    // By the height of what is around both; among equals by number, going round from `first` on.
    const std::uint32_t begin = first < count ? first : 0;
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> model;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t height =
          owners[i] == topology::kNone
              ? machine->root().height
              : machine->common_ancestor(thief, machine->pu(owners[i])).height;
      model.emplace_back(height, (i + count - begin) % count, i);
    }
    std::sort(model.begin(), model.end());
    ASSERT_EQ(seen.order.size(), count);
    for (std::uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(seen.order[i], std::get<2>(model[i])) << "at " << i << " of " << count;
    ASSERT_LE(seen.places_read, std::uint64_t{thief.depth + 1u} * count);
  }
}

TEST(Victims, OfTheLargestMachine) {
  const MachinePtr machine = symmetric(64, 2, 4, 2);
  ASSERT_EQ(machine->n_pus, 1024u);
  std::vector<std::uint32_t> owners(1024);
  for (std::uint32_t i = 0; i < 1024; ++i) owners[i] = i;
  for (std::uint32_t thief = 0; thief < 1024; thief += 31) {
    const Look seen = look(owners, thief * 7 % 1024, &machine->pu(thief));
    ASSERT_EQ(seen.order.size(), 1024u);
    for (std::size_t i = 1; i < seen.order.size(); ++i)
      ASSERT_LE(machine->distance(thief, seen.order[i - 1]),
                machine->distance(thief, seen.order[i]));
  }
}

TEST(Victims, WhereNothingIsKnownGoesRound) {
  EXPECT_EQ(look({0, 1, 2, 3}, 2, nullptr).order, (std::vector<std::uint32_t>{2, 3, 0, 1}));
  EXPECT_EQ(look({0, 1}, 9, nullptr).order, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(look({}, 0, nullptr).order.empty());
}

/// The owners move while a thief looks: it looks at all of them, and ends.
TEST(Victims, MissesNobodyThoughOwnersMove) {
  const MachinePtr machine = symmetric(4, 1, 4, 1);
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    Victims victims(16, random() % 16, &machine->pu(random() % 16));
    std::uint32_t seen = 0;
    int looks = 0;
    for (std::uint32_t i;
         (i = victims.next([&](std::uint32_t) { return random() % 16; })) != Victims::kEnd;) {
      seen |= 1u << i;
      ASSERT_LE(++looks, 16 * 5);
    }
    ASSERT_EQ(seen, 0xffffu);
  }
}

}  // namespace
