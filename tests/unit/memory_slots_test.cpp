// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slots: no page belongs to two of them, and whoever gets one finds nothing in it.
#include "memory/next_touch/slots.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "memory/next_touch/userfault.h"

namespace bosk::memory {
namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kAll = 2048;

int open_one() {
  uint64_t features;
  return open_userfault(false, UFFD_FEATURE_SIGBUS | kFeatureMove, 0, &features);
}

/// All that there are, of one size.
std::vector<uintptr_t> take_all(int file, uint32_t pages) {
  std::vector<uintptr_t> taken;
  while (const uintptr_t at = take_slot(file, pages)) taken.push_back(at);
  return taken;
}

class Slots : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = open_one();
    if (file_ < 0) GTEST_SKIP() << "this kernel cannot move pages, or does not allow it";
  }
  void TearDown() override {
    forget_slots(false);
    if (file_ >= 0) close(file_);
  }
  bool put_a_page(uintptr_t at) {
    alignas(kPage) static char page[kPage];
    memset(page, 7, sizeof page);
    size_t done;
    return userfault_copy(file_, at, reinterpret_cast<uintptr_t>(page), kPage, &done) == 0;
  }
  bool is_empty(uintptr_t at) {
    unsigned char there = 1;
    return mincore(reinterpret_cast<void*>(at), kPage, &there) == 0 && (there & 1) == 0;
  }

  int file_ = -1;
};

TEST_F(Slots, ShareNoPage) {
  for (uint32_t pages = 1; pages <= kSlotPages; ++pages) {
    SCOPED_TRACE(pages);
    const std::vector<uintptr_t> taken = take_all(file_, pages);
    EXPECT_EQ(taken.size(), kAll / 64 * (64 / pages));
    std::set<uintptr_t> all;
    for (const uintptr_t at : taken)
      for (uint32_t i = 0; i < pages; ++i) EXPECT_TRUE(all.insert(at + i * kPage).second);
    EXPECT_LE(*all.rbegin() - *all.begin(), (kAll - 1) * kPage);
    for (const uintptr_t at : taken) give_slot_back(at, pages);
  }
}

TEST_F(Slots, OfMixedSizesAndPartsFitBetweenOthers) {
  const std::vector<uintptr_t> taken = take_all(file_, kSlotPages);
  for (const uintptr_t at : taken) give_slot_back(at + 2 * kPage, 3);  // out of the middle
  EXPECT_EQ(take_slot(file_, 4), 0u);
  const std::vector<uintptr_t> middle = take_all(file_, 3);
  EXPECT_EQ(middle.size(), taken.size());
  std::set<uintptr_t> expected;
  for (const uintptr_t at : taken) expected.insert(at + 2 * kPage);
  EXPECT_EQ(std::set<uintptr_t>(middle.begin(), middle.end()), expected);
}

TEST_F(Slots, AreEmpty) {
  const uintptr_t at = take_slot(file_, 3);
  ASSERT_NE(at, 0u);
  ASSERT_TRUE(put_a_page(at + kPage));
  ASSERT_FALSE(is_empty(at + kPage));
  give_slot_back(at, 3);
  for (const uintptr_t slot : take_all(file_, 1)) ASSERT_TRUE(is_empty(slot));
}

TEST_F(Slots, ThatCannotBeEmptiedAreNobodys) {
  const uintptr_t at = take_slot(file_, 2);
  ASSERT_NE(at, 0u);
  ASSERT_TRUE(put_a_page(at));
  constexpr int kOnFault = 1;  // MLOCK_ONFAULT: it brings nothing in
  if (syscall(SYS_mlock2, at, 2 * kPage, kOnFault) != 0) GTEST_SKIP() << "locking is not allowed";
  give_slot_back(at, 2);
  const std::vector<uintptr_t> others = take_all(file_, 1);
  EXPECT_EQ(others.size(), kAll - 2);
  for (const uintptr_t slot : others) EXPECT_TRUE(slot != at && slot != at + kPage);
}

TEST_F(Slots, BelongToWhoeverWatchesThem) {
  ASSERT_NE(take_slot(file_, 1), 0u);
  const int other = open_one();
  ASSERT_GE(other, 0);
  EXPECT_EQ(take_slot(other, 1), 0u);
  close(other);
}

TEST_F(Slots, AreMappedAnewInAChildThatHasNoneInUse) {
  ASSERT_EQ(take_all(file_, 1).size(), kAll);
  EXPECT_EQ(take_slot(file_, 1), 0u);
  forget_slots(false);
  EXPECT_EQ(take_all(file_, 1).size(), kAll);
  forget_slots(true);
  EXPECT_EQ(take_slot(file_, 1), 0u);
}

TEST(SlotPages, AreFewWhereEachInterruptsAllCpus) {
  EXPECT_TRUE(moves_runs("6.18.44-fc-v669"));
  EXPECT_TRUE(moves_runs("7.0"));
  EXPECT_TRUE(moves_runs("6.20"));
  EXPECT_FALSE(moves_runs("6.12.9+bpo-amd64"));
  EXPECT_FALSE(moves_runs("5.19.0"));
  for (const char* strange : {"", "6", "6.", "x.18", "6.x"}) EXPECT_FALSE(moves_runs(strange));
  EXPECT_GE(most_slot_pages(), 2u);
  EXPECT_LE(most_slot_pages(), kSlotPages);
}

}  // namespace
}  // namespace bosk::memory
