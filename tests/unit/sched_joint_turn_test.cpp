// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who has a joint turn, on workers without kernel threads; what is remembered of code that polls.
#include "sched/joint_turn.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "bare_workers.h"
#include "sched/scheduler.h"
#include "sched/spins/polling_teams.h"

namespace {

using namespace bosk::sched;

class JointTurn : public ::testing::Test {
 protected:
  void SetUp() override { workers_.make(4); }

  std::unique_ptr<Bubble> polling_team(uint32_t size) {
    auto team = std::make_unique<Bubble>();
    team->size = size;
    team->opener = &opener_;
    team->together.store(Together::kPolls);
    team->depth.store(2);
    return team;
  }

  Worker* worker(uint32_t i) { return workers_.at(i); }
  static bool begins(Worker* w, Bubble* team) { return begin_turn(w, team) == Begun::kYes; }
  uint32_t workers_of(const Bubble* team) { return workers_.in_turn_of(team); }

  BareWorkers workers_;
  Thread opener_;
};

TEST_F(JointTurn, HasAsManyWorkersAsTheTeamHasMembers) {
  const auto team = polling_team(3);
  ASSERT_TRUE(begins(worker(1), team.get()));
  EXPECT_EQ(team_in_turn(worker(1)), team.get());
  EXPECT_EQ(workers_of(team.get()), 3u);
}

TEST_F(JointTurn, IsForTeamsThatPollAndFit) {
  const auto large = polling_team(5);
  EXPECT_FALSE(begins(worker(0), large.get()));
  const auto alone = polling_team(1);
  EXPECT_FALSE(begins(worker(0), alone.get()));
  const auto computes = polling_team(2);
  computes->together.store(Together::kNo);
  EXPECT_FALSE(begins(worker(0), computes.get()));
  EXPECT_FALSE(begins(worker(0), nullptr));
}

TEST_F(JointTurn, TakesNoWorkerThatAnotherTeamHas) {
  const auto first = polling_team(2);
  const auto second = polling_team(2);
  const auto third = polling_team(2);
  ASSERT_TRUE(begins(worker(0), first.get()));
  EXPECT_FALSE(begins(worker(0), second.get()));
  // Two are left.
  ASSERT_TRUE(begins(worker(3), second.get()));
  EXPECT_EQ(workers_of(first.get()), 2u);
  EXPECT_EQ(workers_of(second.get()), 2u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_FALSE(begins(worker(i), third.get()));
  EXPECT_EQ(workers_of(third.get()), 0u);
}

TEST_F(JointTurn, NeedsTheWorkerThatTheOpenerIsPinnedTo) {
  const auto other = polling_team(2);
  opener_.pinned = nullptr;
  ASSERT_TRUE(begins(worker(3), other.get()));
  const uint32_t taken = team_in_turn(worker(0)) == other.get() ? 0 : 2;
  Thread pinned;
  pinned.pinned = worker(taken);
  ASSERT_EQ(team_in_turn(worker(taken)), other.get());
  const auto team = polling_team(2);
  team->opener = &pinned;
  EXPECT_FALSE(begins(worker(1), team.get()));
  EXPECT_EQ(workers_of(team.get()), 0u) << "what was claimed is given back";
}

TEST_F(JointTurn, EndsWithItsRegionOrWhenItBringsNothing) {
  const auto team = polling_team(2);
  ASSERT_TRUE(begins(worker(0), team.get()));
  end_turn(worker(1));
  EXPECT_EQ(workers_of(team.get()), 0u);
  ASSERT_TRUE(begins(worker(0), team.get()));
  note_closing(team.get(), 0x1000);
  EXPECT_EQ(workers_of(team.get()), 0u);
  EXPECT_TRUE(polling_regions.has(0x1000));
  EXPECT_EQ(team->together.load(), Together::kNo);
}

TEST_F(JointTurn, GoesOnWithTheNextRegionThatOpensAtOnce) {
  const auto team = polling_team(2);
  ASSERT_TRUE(begins(worker(0), team.get()));
  note_closing(team.get(), 0x3000);
  team->ghosts.open(2, 1);
  EXPECT_TRUE(await_next_region(worker(1), team.get()) || await_next_region(worker(3), team.get()))
      << "the other one of the turn's workers finds the ghost";
  team->together.store(Together::kExpected);
  EXPECT_EQ(workers_of(team.get()), 2u);
}

TEST_F(JointTurn, IsOverIfNoRegionFollows) {
  const auto team = polling_team(2);
  ASSERT_TRUE(begins(worker(0), team.get()));
  team->ghosts.open(0, 0);
  EXPECT_FALSE(await_next_region(worker(0), team.get()));
  EXPECT_EQ(workers_of(team.get()), 0u);
  // Whose turn it is not does not wait.
  team->ghosts.open(2, 1);
  EXPECT_FALSE(await_next_region(worker(0), team.get()));
}

TEST_F(JointTurn, ManyWhoWantTheSameWorkersNeverShareOne) {
  std::vector<std::unique_ptr<Bubble>> teams;
  for (uint32_t i = 0; i < 4; ++i) teams.push_back(polling_team(2 + i % 3));
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 2000; ++round)
        if (begins(worker(i), teams[i].get())) end_turn(worker(i));
    });
  for (auto& thread : threads) thread.join();
  // Nobody is left with more workers than its team has members.
  for (const auto& team : teams) EXPECT_LE(workers_of(team.get()), team->size);
}

TEST(PollingCode, KnowsWhatWasNoted) {
  PollingCode code;
  EXPECT_TRUE(code.empty());
  EXPECT_FALSE(code.has(0x40));
  code.note(0x40);
  code.note(0x40);
  EXPECT_FALSE(code.empty());
  EXPECT_TRUE(code.has(0x40));
  EXPECT_FALSE(code.has(0x50));
}

TEST(PollingCode, ForgetsWhatWasWrong) {
  PollingCode code;
  code.note(0x40);
  code.note(0x50);
  code.forget(0x40);
  code.forget(0x60);
  EXPECT_FALSE(code.has(0x40));
  EXPECT_TRUE(code.has(0x50));
}

TEST_F(JointTurn, LoopsThatComputeAreForgotten) {
  const auto team = polling_team(2);
  Thread member;
  member.bubble = team.get();
  note_polling(&member, 0x7001);
  uint32_t trusted = 0;
  for (int i = 0; i < 80; ++i) trusted += is_trusted(worker(0), &member, 0x7005) ? 1 : 0;
  EXPECT_EQ(trusted, 70u) << "one in eight is looked at closely";
  for (int i = 0; i < 3; ++i) note_computing(worker(0), &member, 0x7001);
  EXPECT_TRUE(polling_loops.has(0x7000));
  note_computing(worker(0), &member, 0x7001);
  EXPECT_FALSE(polling_loops.has(0x7000));
  EXPECT_EQ(team->together.load(), Together::kNo);
  EXPECT_FALSE(is_trusted(worker(0), &member, 0x7001));
}

TEST(PollingCode, ForgetsNothingAndEndsWhenItIsFull) {
  PollingCode code;
  std::vector<uintptr_t> kept;
  for (uintptr_t address = 16; address < 16 * 2000; address += 16) {
    code.note(address);
    if (code.has(address)) kept.push_back(address);
  }
  EXPECT_GE(kept.size(), 200u);
  EXPECT_LE(kept.size(), 256u);
  for (const uintptr_t address : kept) EXPECT_TRUE(code.has(address));
}

TEST(PollingCode, IsNotedByManyAtOnce) {
  PollingCode code;
  std::vector<std::thread> threads;
  for (uintptr_t i = 0; i < 4; ++i)
    threads.emplace_back([&code, i] {
      for (uintptr_t at = 1; at <= 20; ++at) code.note((i * 20 + at) * 4096);
    });
  for (auto& thread : threads) thread.join();
  for (uintptr_t at = 1; at <= 80; ++at) EXPECT_TRUE(code.has(at * 4096));
}

}  // namespace
