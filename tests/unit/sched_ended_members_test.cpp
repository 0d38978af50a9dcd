// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members that have ended: none is forgotten while its region lasts, none is in two records.
#include "sched/ended_members.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <set>

#include "sched/worker.h"

namespace bosk::sched {
namespace {

struct EndedMembersTest : testing::Test {
  std::unique_ptr<Worker> worker = std::make_unique<Worker>();
  Worker* w = worker.get();
  ~EndedMembersTest() override { free_ended_members(w); }

  static void open(Bubble& bubble) {
    bubble.count_opening();
    bubble.queued_work.store(1);
    bubble.helpers.open();
  }

  void end(Bubble& bubble, uint32_t index) {
    note_members(w, &bubble, bubble.life(), index & ~63u, uint64_t{1} << (index & 63));
  }

  /// All that may help, taken out.
  std::multiset<uint32_t> take_all(const Bubble& bubble) {
    std::multiset<uint32_t> found;
    while (EndedMembers* ended = ended_that_may_help(w)) {
      EXPECT_EQ(ended->bubble, &bubble);
      while (ended->mask != 0) {
        found.insert(ended->base + static_cast<uint32_t>(std::countr_zero(ended->mask)));
        ended->mask &= ended->mask - 1;
      }
    }
    return found;
  }
};

TEST_F(EndedMembersTest, AllOfATeamOfManyAreFoundOnce) {
  Bubble bubble;
  open(bubble);
  // In an order that changes the window each time.
  constexpr uint32_t kMembers = 1000;
  for (uint32_t i = 0; i < kMembers; ++i) end(bubble, (i * 397) % kMembers);
  const std::multiset<uint32_t> found = take_all(bubble);
  EXPECT_EQ(found.size(), kMembers);
  for (uint32_t i = 0; i < kMembers; ++i) EXPECT_EQ(found.count(i), 1u) << i;
}

TEST_F(EndedMembersTest, ThoseOfAnOuterTeamOutliveManyInnerRegions) {
  Bubble outer;
  Bubble inner[3];
  open(outer);
  for (uint32_t i = 0; i < 200; ++i) {
    end(outer, i);
    for (Bubble& bubble : inner) {
      open(bubble);
      const Served served{2, 0, 0b110};
      note_ended_ghosts(w, &bubble, served);
      bubble.queued_work.store(0);
    }
  }
  EXPECT_EQ(take_all(outer).size(), 200u);
  // Those of regions that are over have been dropped.
  EXPECT_LT(w->more_ended_count, 300u);
}

TEST_F(EndedMembersTest, AMemberThatIsTakenBackIsNotFound) {
  Bubble bubble;
  open(bubble);
  for (uint32_t i = 0; i < 130; ++i) end(bubble, i);
  EXPECT_TRUE(take_back_member(w, &bubble, 70));
  EXPECT_FALSE(take_back_member(w, &bubble, 70));
  EXPECT_FALSE(take_back_member(w, &bubble, 130));
  const std::multiset<uint32_t> found = take_all(bubble);
  EXPECT_EQ(found.size(), 129u);
  EXPECT_EQ(found.count(70), 0u);
}

TEST_F(EndedMembersTest, ATickNotesWhatIsServedOnceAndOnlyWhereWorkWaits) {
  Bubble bubble;
  Bubble idle;
  open(bubble);
  open(idle);
  idle.queued_work.store(0);
  Thread me;
  WaitsBelow below{0};
  Serving outer{&idle, nullptr, nullptr, {}};
  Serving serving{&bubble, &outer, &below, {}};
  me.serving = &serving;
  uint64_t outer_mask = 0;
  uint64_t mask = 0;
  note_served(&me, &outer, 9, &outer_mask);
  for (uint32_t i = 1; i < 5; ++i) note_served(&me, &serving, i, &mask);
  note_serving(w, &me);
  note_served(&me, &serving, 5, &mask);
  note_serving(w, &me);
  note_served(&me, &serving, 6, &mask);
  EXPECT_TRUE(below.lent);
  EXPECT_EQ(not_noted(serving), uint64_t{1} << 6);
  EXPECT_EQ(not_noted(outer), uint64_t{1} << 9);
  EXPECT_EQ(take_all(bubble), (std::multiset<uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(EndedMembersTest, ARegionThatIsOverHelpsNobody) {
  Bubble bubble;
  open(bubble);
  end(bubble, 3);
  bubble.queued_work.store(0);
  EXPECT_EQ(ended_that_may_help(w), nullptr);
  bubble.queued_work.store(1);
  EXPECT_NE(ended_that_may_help(w), nullptr);
  forget_ended_members(w);
  EXPECT_EQ(ended_that_may_help(w), nullptr);
}

}  // namespace
}  // namespace bosk::sched
