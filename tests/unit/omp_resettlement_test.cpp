// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When teams with memory let other nodes in, and where they are at home then.
#include "omp/resettlement.h"

#include <gtest/gtest.h>

namespace {

using bosk::omp::Resettlement;

constexpr std::uint32_t kNode = 2;  // of the opener
constexpr std::uint32_t kPu = 12;   // of node 3

/// Opens so often until that changes whether others may come in; 0: never in `most`.
std::uint32_t openings_until_change(Resettlement* team, std::uint32_t most, bool adopted = false) {
  for (std::uint32_t i = 1; i <= most; ++i)
    if (team->opens_again(adopted)) return i;
  return 0;
}

TEST(Resettlement, TheDoorOpensAndShutsLessAndLessOften) {
  Resettlement team;
  EXPECT_FALSE(team.lets_in());
  for (std::uint32_t peace = Resettlement::kLeastPeace; peace <= Resettlement::kMostPeace;
       peace *= 2) {
    EXPECT_EQ(openings_until_change(&team, 10'000), peace);
    EXPECT_TRUE(team.lets_in());
    EXPECT_EQ(openings_until_change(&team, 10'000), Resettlement::kDoorOpen);
    EXPECT_FALSE(team.lets_in());
  }
}

TEST(Resettlement, PeaceHasAnEnd) {
  Resettlement team;
  for (int i = 0; i < 40; ++i) team.settle(1, 4);
  EXPECT_EQ(openings_until_change(&team, 3 * Resettlement::kMostPeace), Resettlement::kMostPeace);
}

TEST(Resettlement, TheDoorStaysOpenForWhoHasAdoptedIt) {
  Resettlement team;
  openings_until_change(&team, 100);
  EXPECT_EQ(openings_until_change(&team, 1000, true), 0u);
  EXPECT_TRUE(team.lets_in());
  EXPECT_EQ(openings_until_change(&team, 1000), Resettlement::kDoorOpen);
}

TEST(Resettlement, IsAtHomeWhereItHasSettledWhileItsOpenerStays) {
  Resettlement team;
  EXPECT_EQ(team.pu_for(kNode), Resettlement::kWithOpener);
  openings_until_change(&team, 100);
  team.settle(3, kPu);
  EXPECT_FALSE(team.lets_in());
  EXPECT_EQ(openings_until_change(&team, 1000), 2 * Resettlement::kLeastPeace);
  EXPECT_EQ(team.pu_for(kNode), kPu);
  EXPECT_EQ(team.pu_for(kNode), kPu);
  // With an opener who is elsewhere it begins anew, also when he is back.
  EXPECT_EQ(team.pu_for(1), Resettlement::kWithOpener);
  EXPECT_EQ(team.pu_for(kNode), Resettlement::kWithOpener);
}

TEST(Resettlement, GoesHome) {
  Resettlement team;
  EXPECT_EQ(team.pu_for(kNode), Resettlement::kWithOpener);
  team.settle(3, kPu);
  team.settle(kNode, 8);
  EXPECT_EQ(team.pu_for(kNode), Resettlement::kWithOpener);
}

}  // namespace
