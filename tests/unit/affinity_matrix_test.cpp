// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The affinity matrix, its aging, and the paper's equations 1 and 2 on matrices small enough to compute by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "affinity/sharing_matrix.h"

namespace bosk::affinity {
namespace {

TEST(SharingMatrix, IsSymmetricAndKeepsWhatItHasWhenItGrows) {
  SharingMatrix matrix;
  EXPECT_EQ(matrix.threads(), 0U);
  for (uint32_t t = 1; t < 100; ++t) matrix.add(t, t - 1, t);
  ASSERT_EQ(matrix.threads(), 100U);
  for (uint32_t a = 0; a < 100; ++a)
    for (uint32_t b = 0; b < 100; ++b) {
      const uint32_t expected = a + 1 == b ? b : b + 1 == a ? a : 0;
      ASSERT_EQ(matrix.at(a, b), expected) << a << " " << b;
    }
  EXPECT_EQ(matrix.row(99).size(), 100U);
}

TEST(SharingMatrix, AThreadSharesNothingWithItself) {
  SharingMatrix matrix(2);
  matrix.add(1, 1, 7);
  EXPECT_EQ(matrix.at(1, 1), 0U);
}

TEST(SharingMatrix, ACellThatIsFullStaysFull) {
  SharingMatrix matrix;
  matrix.add(0, 1, UINT32_MAX - 1);
  matrix.add(1, 0, 5);
  EXPECT_EQ(matrix.at(0, 1), UINT32_MAX);
  EXPECT_EQ(matrix.at(1, 0), UINT32_MAX);
}

TEST(SharingMatrix, AgesByAQuarterAndDownToNothing) {
  SharingMatrix matrix;
  matrix.add(0, 1, 1000);
  matrix.add(0, 2, 3);
  matrix.age();
  EXPECT_EQ(matrix.at(0, 1), 750U);
  EXPECT_EQ(matrix.at(1, 0), 750U);
  EXPECT_EQ(matrix.at(0, 2), 2U);
  for (int i = 0; i < 40; ++i) matrix.age();
  EXPECT_EQ(matrix.at(0, 1), 0U);
  EXPECT_EQ(matrix.at(0, 2), 0U);
}

TEST(SharingMatrix, ForgetsOneThread) {
  SharingMatrix matrix;
  matrix.add(0, 1, 2);
  matrix.add(1, 2, 3);
  matrix.add(0, 2, 4);
  matrix.forget(1);
  matrix.forget(9);
  EXPECT_EQ(matrix.at(0, 1), 0U);
  EXPECT_EQ(matrix.at(2, 1), 0U);
  EXPECT_EQ(matrix.at(2, 0), 4U);
}

TEST(SharingMatrix, EquationsOneAndTwo) {
  SharingMatrix matrix;
  EXPECT_EQ(heterogeneity(matrix), 0);
  EXPECT_EQ(sharing_amount(matrix), 0);
  // 0 6 0
  // 6 0 3   row means 2, 3, 1
  // 0 3 0
  matrix.add(0, 1, 6);
  matrix.add(1, 2, 3);
  EXPECT_DOUBLE_EQ(sharing_amount(matrix), 18.0 / 9);
  const double rows = (4 + 16 + 4) + (9 + 9 + 0) + (1 + 4 + 1);
  EXPECT_DOUBLE_EQ(heterogeneity(matrix), rows / 9);
}

TEST(SharingMatrix, HeterogeneityTellsGroupsFromAllToAll) {
  SharingMatrix all;
  SharingMatrix groups;
  for (uint32_t a = 0; a < 16; ++a)
    for (uint32_t b = 0; b < a; ++b) {
      all.add(a, b, 10);
      if (a / 4 == b / 4) groups.add(a, b, 50);
    }
  EXPECT_DOUBLE_EQ(sharing_amount(all), sharing_amount(groups));
  EXPECT_GT(heterogeneity(groups), 10 * heterogeneity(all));
}

TEST(SharingMatrix, Correlation) {
  std::mt19937 random(7);
  SharingMatrix truth(32);
  SharingMatrix scaled(32);
  SharingMatrix noise(32);
  SharingMatrix opposite(32);
  for (uint32_t a = 0; a < 32; ++a)
    for (uint32_t b = 0; b < a; ++b) {
      const auto value = static_cast<uint32_t>(random() % 1000);
      truth.add(a, b, value);
      scaled.add(a, b, 3 * value + 5);
      opposite.add(a, b, 1000 - value);
      noise.add(a, b, static_cast<uint32_t>(random() % 1000));
    }
  EXPECT_NEAR(correlation(truth, scaled), 1, 1e-12);
  EXPECT_NEAR(correlation(truth, opposite), -1, 1e-12);
  EXPECT_NEAR(correlation(truth, noise), 0, .2);
  EXPECT_EQ(correlation(truth, SharingMatrix(32)), 0) << "one of them says nothing";
  EXPECT_EQ(correlation(SharingMatrix(1), SharingMatrix(1)), 0);
}

TEST(SharingMatrix, CorrelationWithOneThatKnowsFewerThreads) {
  SharingMatrix large;
  SharingMatrix small;
  large.add(0, 1, 100);
  large.add(2, 3, 50);
  small.add(0, 1, 100);
  EXPECT_GT(correlation(large, small), .8);
  EXPECT_LT(correlation(large, small), 1);
  EXPECT_DOUBLE_EQ(correlation(large, small), correlation(small, large));
}

}  // namespace
}  // namespace bosk::affinity
