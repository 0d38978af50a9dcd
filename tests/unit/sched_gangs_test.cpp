// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When a gang's members may run, and who comes next, on workers without kernel threads.
#include "sched/gangs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bare_workers.h"
#include "sched/configuration.h"
#include "sched/joint_turn.h"
#include "sched/scheduler.h"
#include "sched/spins/polling_teams.h"
#include "sched/tick_timer.h"
#include "sched/tuning.h"

namespace {

using namespace bosk::sched;

constexpr uint32_t kTicks = 100;

class Gangs : public ::testing::Test {
 protected:
  void make_workers(uint32_t count) {
    workers_.make(count);
    opener_.pool = workers_.pool();
  }

  Bubble* gang(uint32_t size, uint32_t home) {
    teams_.push_back(std::make_unique<Bubble>());
    Bubble* team = teams_.back().get();
    team->size = size;
    team->opener = &opener_;
    team->depth.store(2);
    team->home.store(worker(home));
    // So long that only leaving ends it.
    make_gang(team, kTicks);
    return team;
  }

  Worker* worker(uint32_t i) { return workers_.at(i); }
  /// The worker forgets that it has asked just now.
  bool may(uint32_t i, Bubble* team) {
    worker(i)->ask_again_at = 0;
    return may_run(worker(i), team);
  }
  uint32_t workers_of(const Bubble* team) { return workers_.in_turn_of(team); }
  /// As the clock does.
  void end_turn_of(Bubble* team) {
    team->turn_until.store(0);
    for (auto& w : workers_)
      if (team_in_turn(w.get()) == team) leave_turn(w.get());
  }

  BareWorkers workers_;
  std::vector<std::unique_ptr<Bubble>> teams_;
  Thread opener_;
};

void wait_for(uint64_t us) {
  const uint64_t begin = bosk::base::cycles();
  while (bosk::base::cycles() - begin < us * bosk::base::cycles_per_microsecond())
    bosk::base::cpu_pause();
}

/// As long as a worker looks for members of a gang before it leaves its turn.
void wait_for_patience() { wait_for(kTicks * period_of_ticks(false) / 1000 / 15); }

TEST_F(Gangs, HaveAsManyWorkersAsMembersOrNone) {
  make_workers(4);
  Bubble* a = gang(3, 0);
  Bubble* b = gang(2, 3);
  EXPECT_TRUE(may(0, a));
  EXPECT_EQ(workers_of(a), 3u);
  EXPECT_FALSE(may(3, b)) << "one worker is left";
  EXPECT_EQ(workers_of(b), 0u);
  EXPECT_TRUE(worker(3)->gang_refused);
  end_turn_of(a);
  EXPECT_TRUE(may(3, b));
  EXPECT_EQ(workers_of(b), 2u);
  EXPECT_FALSE(may(0, a));
}

TEST_F(Gangs, RunSideBySideWhereTheyFit) {
  make_workers(5);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(3, 4);
  EXPECT_TRUE(may(0, a));
  EXPECT_TRUE(may(4, b));
  EXPECT_EQ(workers_of(a), 2u);
  EXPECT_EQ(workers_of(b), 3u);
}

TEST_F(Gangs, PreferWorkersThatIdle) {
  make_workers(4);
  worker(2)->idle.store(1);
  Bubble* a = gang(2, 0);
  EXPECT_TRUE(may(0, a));
  EXPECT_EQ(team_in_turn(worker(2)), a);
  EXPECT_EQ(team_in_turn(worker(1)), nullptr);
}

TEST_F(Gangs, NeedTheWorkerThatTheirOpenerIsPinnedTo) {
  make_workers(3);
  opener_.pinned = worker(2);
  Bubble* a = gang(2, 2);
  EXPECT_TRUE(may(0, a));
  EXPECT_EQ(team_in_turn(worker(2)), a);
  EXPECT_EQ(team_in_turn(worker(1)), nullptr);
}

TEST_F(Gangs, BeginNothingWhereAMemberWaitsThatCanRunNowhereElse) {
  make_workers(2);
  Bubble* a = gang(2, 0);
  Bubble* inside = gang(1, 0);
  inside->parent.store(a);
  inside->depth.store(3);
  Thread member;
  member.pinned = worker(0);
  member.bubble = inside;
  worker(0)->ready.enqueue(&member);
  EXPECT_FALSE(may(0, a)) << "it comes first";
  EXPECT_FALSE(worker(0)->gang_refused) << "and nobody sleeps meanwhile";
  EXPECT_TRUE(may(1, a)) << "another worker begins what has not begun";
  EXPECT_EQ(pop_ready(worker(0)), &member);
  EXPECT_TRUE(may(0, a));
}

TEST_F(Gangs, OthersThanGangsRunAsEver) {
  make_workers(2);
  Bubble* a = gang(2, 0);
  Bubble plain;
  EXPECT_TRUE(may(1, a));
  EXPECT_TRUE(may(0, &plain));
  EXPECT_TRUE(may(0, nullptr));
}

TEST_F(Gangs, WhatTheirMembersOpenIsOfTheGang) {
  make_workers(3);
  Bubble* a = gang(2, 0);
  Bubble inside;
  inside.size = 8;
  inside.parent.store(a);
  Bubble alone;
  alone.parent.store(&inside);
  EXPECT_EQ(gang_of(&alone), a);
  EXPECT_TRUE(may(0, &alone));
  EXPECT_EQ(workers_of(a), 2u);
}

TEST_F(Gangs, InsideOfOthersComeBeforeThese) {
  make_workers(3);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(2, 2);
  Bubble* inside = gang(2, 0);
  inside->parent.store(a);
  inside->depth.store(3);
  ASSERT_TRUE(may(0, a));
  EXPECT_TRUE(may(0, inside)) << "its opener has nothing else to do";
  EXPECT_EQ(workers_of(inside), 2u);
  EXPECT_FALSE(may(0, a));
  EXPECT_FALSE(may(2, b));
  note_closing(inside, 0x1000);
  wait_for(2 * tuning::kNextRegionUs);
  // What is left of its turn is the outer one's.
  EXPECT_TRUE(may(0, a));
  EXPECT_EQ(team_in_turn(worker(0)), a);
}

TEST_F(Gangs, TooLargeForThePoolAreNone) {
  make_workers(4);
  Bubble* a = gang(5, 0);
  EXPECT_TRUE(may(0, a));
  EXPECT_EQ(a->together.load(), Together::kNo);
  EXPECT_EQ(workers_of(a), 0u);
}

TEST_F(Gangs, AreLeftByWorkersThatFindNothingOfThem) {
  make_workers(2);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(2, 1);
  EXPECT_TRUE(may(0, a));
  EXPECT_FALSE(may(1, b));
  wait_for_patience();
  EXPECT_FALSE(may(1, b)) << "worker 0 is still in the other's turn";
  EXPECT_EQ(team_in_turn(worker(1)), nullptr);
  // It comes back to it as long as the turn lasts.
  EXPECT_TRUE(may(1, a));
  EXPECT_EQ(team_in_turn(worker(1)), a);
  EXPECT_FALSE(may(1, b)) << "and its patience begins anew";
  EXPECT_EQ(team_in_turn(worker(1)), a);
}

TEST_F(Gangs, KeepTheirTurnForTheNextRegionAWhile) {
  make_workers(2);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(2, 1);
  EXPECT_TRUE(may(0, a));
  note_closing(a, 0x1000);
  EXPECT_EQ(a->together.load(), Together::kNo);
  make_gang(a, kTicks);
  EXPECT_TRUE(may(0, a));
  note_closing(a, 0x1000);
  wait_for(2 * tuning::kNextRegionUs);
  EXPECT_EQ(workers_of(a), 0u);
  EXPECT_TRUE(may(1, b));
}

TEST_F(Gangs, FirstInLineComesFirst) {
  make_workers(4);
  Bubble* a = gang(3, 0);
  Bubble* b = gang(3, 1);
  Bubble* c = gang(2, 2);
  EXPECT_TRUE(may(0, a));
  EXPECT_FALSE(may(1, b));
  EXPECT_FALSE(may(2, c));
  EXPECT_EQ(workers_.pool()->gang_line.first.load(), b);
  end_turn_of(a);
  EXPECT_FALSE(may(0, a)) << "who asks lets the first begin";
  EXPECT_EQ(workers_of(b), 3u);
  EXPECT_EQ(workers_.pool()->gang_line.first.load(), a);
}

TEST_F(Gangs, LargeOnesArePassedOnlySoOften) {
  make_workers(4);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(2, 2);
  Bubble* all = gang(4, 1);
  EXPECT_TRUE(may(0, a));
  EXPECT_TRUE(may(2, b));
  EXPECT_FALSE(may(1, all));
  // Never are all four free at the same time.
  int turns = 0;
  for (; turns < 1000; ++turns) {
    Bubble* ends = turns % 2 == 0 ? a : b;
    end_turn_of(ends);
    if (!may(turns % 2 == 0 ? 0 : 2, ends)) break;
  }
  EXPECT_EQ(turns, 16);
  end_turn_of(b);
  EXPECT_TRUE(may(1, all));
  EXPECT_EQ(workers_of(all), 4u);
}

TEST_F(Gangs, WhoEndsLeavesTheLine) {
  make_workers(2);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(2, 1);
  EXPECT_TRUE(may(0, a));
  EXPECT_FALSE(may(1, b));
  EXPECT_EQ(workers_.pool()->gang_line.first.load(), b);
  note_closing(b, 0x1000);
  EXPECT_EQ(workers_.pool()->gang_line.first.load(), nullptr);
}

TEST_F(Gangs, ReadyThreadsOfTheGangInTurnComeFirst) {
  make_workers(2);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(2, 1);
  Thread of_a;
  Thread of_b;
  Thread plain;
  of_a.bubble = a;
  of_b.bubble = b;
  worker(0)->ready.enqueue(&of_b);
  worker(0)->ready.enqueue(&plain);
  worker(1)->ready.enqueue(&of_a);
  ASSERT_TRUE(may(0, a));
  EXPECT_EQ(pop_ready(worker(0)), &of_a) << "from the other's queue";
  worker(0)->ask_again_at = 0;
  EXPECT_EQ(pop_ready(worker(0)), &plain);
  worker(0)->ask_again_at = 0;
  EXPECT_EQ(pop_ready(worker(0)), nullptr);
  end_turn_of(a);
  worker(0)->ask_again_at = 0;
  EXPECT_EQ(pop_ready(worker(0)), &of_b);
  EXPECT_EQ(workers_of(b), 2u);
}

TEST_F(Gangs, OpenersWhoseMembersHaveEndedGoOnAtOnce) {
  make_workers(2);
  Bubble* a = gang(2, 0);
  Bubble* b = gang(2, 1);
  Thread opener;
  opener.bubble = b;
  b->opener = &opener;
  opener.pool = workers_.pool();
  b->pending.open(1);
  ASSERT_TRUE(may(0, a));
  worker(0)->ready.enqueue(&opener);
  EXPECT_EQ(pop_ready(worker(0)), nullptr);
  b->pending.finish(1);
  EXPECT_EQ(pop_ready(worker(0)), &opener);
}

/// Each wishes for turns on its own worker; all get some, and nobody ever has part of one.
TEST_F(Gangs, ManyWhoWantTheSameWorkersAllComeToTheirTurn) {
  constexpr uint32_t kWorkers = 6;
  make_workers(kWorkers);
  const uint32_t sizes[kWorkers] = {2, 3, 6, 4, 2, 5};
  std::vector<Bubble*> gangs;
  for (uint32_t i = 0; i < kWorkers; ++i) gangs.push_back(gang(sizes[i], i));
  std::atomic<uint32_t> left{kWorkers};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kWorkers; ++i)
    threads.emplace_back([&, i] {
      uint32_t turns = 0;
      while (left.load() != 0) {
        Worker* w = worker(i);
        w->ask_again_at = 0;
        // Another one may have begun ours for us: then we are in it.
        if (may_run(w, gangs[i])) {
          for (auto& other : workers_)
            if (team_in_turn(other.get()) == gangs[i]) leave_turn(other.get());
          gangs[i]->turn_until.store(0);
          if (++turns == 200) left.fetch_sub(1);
        } else {
          // A turn in which its workers find nothing is left by them.
          Bubble* here = team_in_turn(w);
          if (here != nullptr && here != gangs[i]) leave_turn(w);
          std::this_thread::yield();
        }
      }
    });
  for (auto& thread : threads) thread.join();
  for (Bubble* gang : gangs) EXPECT_EQ(gang->together.load(), Together::kGang);
}

}  // namespace
