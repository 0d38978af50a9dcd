// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a worker takes from another node it takes whole, for its node (2005 §3.3.3), on invented machines: whose ghosts, how many, and who
// finds them then. Workers are played by nobody: the test asks for them.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "invented_machine.h"
#include "sched/scheduler.h"
#include "sched/team_events.h"
#include "sched/time_samples.h"
#include "sched/turns.h"

namespace {

using namespace bosk;
using namespace bosk::test;
using namespace bosk::sched;

constexpr std::uint32_t kPusOfNode = 4;

class WholeTeams : public testing::Test {
 protected:
  WholeTeams() : machine_(symmetric(4, 1, kPusOfNode, 1)), pool_(std::make_unique<Pool>()) {
    kernel_.timer_armed.store(1);  // it ticks already
    pool_->machine.store(machine_.get());
    for (std::uint32_t i = 0; i < machine_.get()->n_pus; ++i) {
      workers_.push_back(std::make_unique<Worker>());
      workers_[i]->index = i;
      workers_[i]->pool = pool_.get();
      workers_[i]->kernel.store(&kernel_);
      pool_->workers[i].store(workers_[i].get());
    }
    pool_->worker_count.store(machine_.get()->n_pus);
  }
  ~WholeTeams() override {
    for (auto& w : workers_) free(w->open_list.load());
  }

  Worker* worker(std::uint32_t node, std::uint32_t pu) {
    return workers_[node * kPusOfNode + pu].get();
  }

  /// A team of so many that the node's first worker opens, and where it is at home.
  Bubble* open(std::uint32_t node, std::uint32_t size) {
    teams_.push_back(std::make_unique<Bubble>());
    Bubble* team = teams_.back().get();
    team->size = size;
    team->near.store(reach_of(node * kPusOfNode, node * kPusOfNode + kPusOfNode - 1));
    team->home.store(worker(node, 0));
    open_again(team);
    return team;
  }
  static void open_again(Bubble* team) {
    team->ghosts.open(team->size, 1);
    publish_bubble(team->opened_on(), team);
  }

  static void waits_no_longer(Worker* w) { w->far_wait.begin(1, 0, 0); }
  static void waits_for_whole_teams_no_longer(Worker* w) {
    constexpr std::uint64_t kLong = std::uint64_t{1} << 50;  // cycles
    w->far_wait.begin(base::cycles() - kLong, kLong, kLong);
  }

  /// The number of the ghost that it takes now; 0: it finds none.
  static std::uint32_t take(Worker* w, bool* is_far) {
    Bubble* found = find_bubble(w, Far::kIfItIsTime, is_far);
    return found != nullptr ? claim_found(w, found).index : 0;
  }
  static std::uint32_t take(Worker* w) {
    bool is_far;
    return take(w, &is_far);
  }

  MachinePtr machine_;
  context::Identity kernel_{};
  std::unique_ptr<Pool> pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Bubble>> teams_;
};

TEST_F(WholeTeams, GhostsOfAnotherNodeAreLeftAloneForAWhile) {
  open(0, 4);
  EXPECT_EQ(take(worker(1, 0)), 0u);
  EXPECT_EQ(take(worker(0, 2)), 1u);
}

TEST_F(WholeTeams, AreTakenForTheNodeAndStayThere) {
  constexpr std::uint32_t kRegion = 7;
  Bubble* team = open(0, 4);
  team->region.store(kRegion);
  waits_no_longer(worker(1, 1));
  bool is_far = false;
  EXPECT_EQ(take(worker(1, 1), &is_far), 1u);
  EXPECT_TRUE(is_far);
  EXPECT_EQ(team->ghosts.left(), 0u);
  // Those of other nodes have not waited, and neither has who is at home there.
  EXPECT_EQ(take(worker(2, 0)), 0u);
  EXPECT_EQ(take(worker(0, 1)), 0u);
  // A neighbour of who took them need not.
  EXPECT_EQ(take(worker(1, 3), &is_far), 2u);
  EXPECT_FALSE(is_far);
  // Nor the opener's: they would be apart.
  EXPECT_EQ(take(worker(0, 0)), 0u);
  waits_no_longer(worker(0, 0));
  EXPECT_EQ(take(worker(0, 0), &is_far), 3u);
  EXPECT_TRUE(is_far);
  EXPECT_TRUE(worker(1, 1)->share.empty());
  EXPECT_EQ(worker(1, 1)->counts.teams_taken, 1u);
  EXPECT_EQ(worker(0, 0)->counts.teams_taken, 0u);
  // For the report: by region, and in a forked child only what is done there.
  EXPECT_EQ(team_events(kRegion, TeamEvent::kTaken), 1u);
  EXPECT_EQ(team_events(kRegion, TeamEvent::kResettled), 0u);
  EXPECT_EQ(team_events(kRegion + 1, TeamEvent::kTaken), 0u);
  forget_team_events_after_fork();
  EXPECT_EQ(team_events(kRegion, TeamEvent::kTaken), 0u);
}

TEST_F(WholeTeams, OfTeamsWhoseRegionHasNoNumberNothingIsNoted) {
  open(0, 4);
  waits_no_longer(worker(1, 1));
  EXPECT_EQ(take(worker(1, 1)), 1u);
  EXPECT_EQ(worker(1, 1)->counts.teams_taken, 1u);
  for (std::uint32_t region = 0; region < kSampledRegions; ++region)
    EXPECT_EQ(team_events(region, TeamEvent::kTaken), 0u) << region;
}

TEST_F(WholeTeams, WhoHasWaitedTakesWhatAnotherNodeHasTaken) {
  open(0, 4);
  waits_no_longer(worker(1, 1));
  waits_no_longer(worker(2, 1));
  waits_no_longer(worker(0, 1));
  EXPECT_EQ(take(worker(1, 1)), 1u);
  EXPECT_EQ(take(worker(2, 1)), 2u);
  EXPECT_EQ(take(worker(0, 1)), 3u);
}

TEST_F(WholeTeams, NoMoreThanTheNodeHasPusFor) {
  Bubble* team = open(0, 20);
  waits_no_longer(worker(3, 0));
  EXPECT_EQ(take(worker(3, 0)), 1u);
  EXPECT_EQ(team->ghosts.left(), 15u);
  for (std::uint32_t pu = 1; pu < kPusOfNode; ++pu) EXPECT_EQ(take(worker(3, pu)), 1 + pu);
  // Who has nothing to do there finds more.
  EXPECT_EQ(take(worker(3, 1)), 1 + kPusOfNode);
  EXPECT_EQ(take(worker(2, 1)), 0u);
}

TEST_F(WholeTeams, OfSeveralTheOneWithMostLeft) {
  open(0, 3);
  Bubble* whole = open(1, 4);
  open(2, 2);
  waits_no_longer(worker(3, 0));
  EXPECT_EQ(take(worker(3, 0)), 1u);
  EXPECT_EQ(whole->ghosts.left(), 0u);
}

TEST_F(WholeTeams, AreAdoptedForSomeRegions) {
  Bubble* team = open(0, 4);
  EXPECT_FALSE(team->adoption.is_known());
  waits_no_longer(worker(1, 0));
  for (std::uint32_t pu = 0; pu < 3; ++pu) EXPECT_EQ(take(worker(1, pu)), 1 + pu);
  worker(1, 0)->far_wait.taken();
  for (std::uint32_t life = 0; life < Adoption::kLives; ++life) {
    ASSERT_TRUE(team->adoption.is_known());
    ASSERT_EQ(team->adoption.opens_again(), kReachNobody);
    open_again(team);
    bool is_far = true;
    EXPECT_EQ(take(worker(2, 0)), 0u);
    // Any worker of the node, at once, and it takes all.
    EXPECT_EQ(take(worker(1, 1 + life % 3), &is_far), 1u);
    EXPECT_FALSE(is_far);
    EXPECT_EQ(team->ghosts.left(), 0u);
    for (std::uint32_t pu = 0; pu < 2; ++pu) EXPECT_NE(take(worker(1, 0)), 0u);
  }
  // It must be earned again; and the node has had it whole most of the time.
  EXPECT_EQ(team->adoption.opens_again(), reach_of(kPusOfNode, 2 * kPusOfNode - 1));
  open_again(team);
  EXPECT_FALSE(team->adoption.is_known());
  EXPECT_EQ(take(worker(1, 0)), 0u);
  EXPECT_EQ(take(worker(0, 1)), 1u);
}

TEST_F(WholeTeams, OfAnotherNodeByAdoptionComeLastAtHome) {
  Bubble* team = open(0, 4);
  waits_no_longer(worker(1, 0));
  for (std::uint32_t pu = 0; pu < 3; ++pu) EXPECT_NE(take(worker(1, pu)), 0u);
  EXPECT_EQ(team->adoption.opens_again(), kReachNobody);
  open_again(team);
  Bubble* other = open(0, 2);
  bool is_far = true;
  EXPECT_EQ(find_bubble(worker(0, 1), Far::kIfItIsTime, &is_far), other);
  EXPECT_EQ(take(worker(0, 1)), 1u);
  EXPECT_EQ(other->ghosts.left(), 0u);
  EXPECT_TRUE(team->adoption.is_known());
  // Who has nothing else to do: then it is to be earned again.
  EXPECT_EQ(take(worker(0, 2), &is_far), 1u);
  EXPECT_FALSE(is_far);
  EXPECT_EQ(team->ghosts.left(), 2u) << "at home one by one";
  EXPECT_FALSE(team->adoption.is_known());
}

TEST_F(WholeTeams, AreLeftToWhoHasAdoptedThemByTheirOpenerForAWhile) {
  Bubble* team = open(0, 4);
  EXPECT_FALSE(is_left_to_adopter(worker(0, 0), team));
  team->adoption.adopted_by(node_of_worker(worker(1, 0)));
  EXPECT_TRUE(is_left_to_adopter(worker(0, 0), team));
  EXPECT_FALSE(is_left_to_adopter(worker(1, 1), team));
  waits_for_whole_teams_no_longer(worker(0, 0));
  EXPECT_TRUE(is_left_to_adopter(worker(0, 0), team));
  // A third node leaves them to that one, too.
  waits_for_whole_teams_no_longer(worker(2, 0));
  EXPECT_EQ(take(worker(2, 0)), 0u);
}

TEST_F(WholeTeams, WhoHasAdoptedThemAndDoesNotComeLosesThemToTheirOpener) {
  Bubble* team = open(0, 4);
  team->adoption.adopted_by(node_of_worker(worker(1, 0)));
  waits_no_longer(worker(0, 0));
  EXPECT_FALSE(is_left_to_adopter(worker(0, 0), team));
  EXPECT_EQ(claim_opened_here(worker(0, 0), team).index, 1u);
  EXPECT_FALSE(team->adoption.is_known());
}

TEST_F(WholeTeams, OfMembersThatPollAreNotLeftToAnybody) {
  Bubble* team = open(0, 4);
  team->adoption.adopted_by(node_of_worker(worker(1, 0)));
  team->together.store(Together::kExpected);
  EXPECT_FALSE(is_left_to_adopter(worker(0, 0), team));
}

TEST_F(WholeTeams, TheRestOfASmallTeamComesLater) {
  Bubble* begun = open(0, 4);
  EXPECT_EQ(take(worker(0, 1)), 1u);
  waits_for_whole_teams_no_longer(worker(1, 0));
  EXPECT_EQ(take(worker(1, 0)), 0u);
  bool is_far;
  EXPECT_NE(find_bubble(worker(1, 0), Far::kEver, &is_far), nullptr) << "so it does not sleep";
  // Of a smaller one nobody has begun.
  Bubble* whole = open(2, 2);
  waits_no_longer(worker(1, 0));
  EXPECT_EQ(take(worker(1, 0)), 1u);
  EXPECT_EQ(whole->ghosts.left(), 0u);
  EXPECT_EQ(take(worker(1, 0)), 2u);
  EXPECT_EQ(begun->ghosts.left(), 0u);
}

TEST_F(WholeTeams, OfALargeTeamThereIsAWholeNodeful) {
  open(0, 20);
  EXPECT_EQ(take(worker(0, 1)), 1u);
  waits_for_whole_teams_no_longer(worker(1, 0));
  EXPECT_EQ(take(worker(1, 0)), 2u);
}

TEST_F(WholeTeams, WhoTookTheSmallerPartAdoptsNothing) {
  Bubble* team = open(0, 4);
  EXPECT_EQ(take(worker(0, 1)), 1u);
  EXPECT_EQ(take(worker(0, 2)), 2u);
  waits_no_longer(worker(1, 0));
  EXPECT_EQ(take(worker(1, 0)), 3u);
  EXPECT_FALSE(team->adoption.is_known());
}

TEST_F(WholeTeams, WithAShareOfItsOwnAWorkerTakesOne) {
  Bubble* large = open(0, 20);
  Bubble* team = open(2, 3);
  waits_no_longer(worker(1, 0));
  worker(1, 0)->share.open(large, large->ghosts.claim(2));
  bool is_far;
  Bubble* found = find_bubble(worker(1, 0), Far::kIfItIsTime, &is_far);
  ASSERT_EQ(found, large);
  EXPECT_EQ(claim_found(worker(1, 0), found).count, 1u);
  EXPECT_EQ(large->ghosts.left(), 16u);
  EXPECT_EQ(team->ghosts.left(), 2u);
}

TEST_F(WholeTeams, OfTeamsThatPollGhostsStayInTheBubble) {
  Bubble* team = open(0, 4);
  team->together.store(Together::kPolls);
  waits_no_longer(worker(1, 0));
  EXPECT_EQ(take(worker(1, 0)), 1u);
  EXPECT_EQ(team->ghosts.left(), 2u);
}

TEST_F(WholeTeams, WhereAllIsNearGhostsAreTakenOneByOne) {
  Bubble* team = open(0, 4);
  team->near.store(kReachAll);
  EXPECT_EQ(take(worker(3, 0)), 1u);
  EXPECT_EQ(team->ghosts.left(), 2u);
  EXPECT_TRUE(worker(3, 0)->share.empty());
  EXPECT_FALSE(team->adoption.is_known());
}

// ---- Threads that wait for their turn

class WaitingThreads : public WholeTeams {
 protected:
  WaitingThreads() { pool_->has_had_ghosts.store(true); }
  ~WaitingThreads() override {
    for (auto& w : workers_)
      while (w->ready.first != nullptr) w->ready.remove_locked(w->ready.first);
  }

  /// A team of the node, so many of which have begun and wait on the node's workers, in turn.
  Bubble* begin(std::uint32_t node, std::uint32_t size, std::uint32_t waiting) {
    teams_.push_back(std::make_unique<Bubble>());
    Bubble* team = teams_.back().get();
    team->size = size;
    team->near.store(reach_of(node * kPusOfNode, node * kPusOfNode + kPusOfNode - 1));
    team->home.store(worker(node, 0));
    for (std::uint32_t i = 0; i < waiting; ++i)
      worker(node, i % kPusOfNode)->ready.enqueue(member_of(team));
    return team;
  }
  Thread* member_of(Bubble* team) {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->bubble = team;
    return threads_.back().get();
  }
  static Bubble* team_of(const Thread* thread) {
    return thread != nullptr ? thread->bubble : nullptr;
  }
  std::uint32_t waiting_on(std::uint32_t node, const Bubble* team) {
    std::uint32_t found = 0;
    for (std::uint32_t pu = 0; pu < kPusOfNode; ++pu)
      for (Entity* e = worker(node, pu)->ready.first; e != nullptr; e = e->next)
        found += static_cast<Thread*>(e)->bubble == team;
    return found;
  }
  void idles(Worker* w) {
    w->idle.store(1);
    pool_->idle_count.fetch_add(1);
  }

  std::vector<std::unique_ptr<Thread>> threads_;
};

TEST_F(WaitingThreads, OfANodeAreTakenThereAtOnceAndElsewhereAfterAWhile) {
  Bubble* team = begin(0, 4, 2);
  bool is_far = false;
  EXPECT_FALSE(others_have_ready_thread(worker(1, 0), Far::kIfItIsTime, &is_far));
  EXPECT_TRUE(others_have_ready_thread(worker(1, 0), Far::kEver, &is_far));
  EXPECT_TRUE(is_far);
  EXPECT_EQ(steal_ready_thread(worker(1, 0)), nullptr);
  EXPECT_EQ(team_of(steal_ready_thread(worker(0, 3))), team);
  EXPECT_FALSE(team->adoption.is_known());
  EXPECT_EQ(worker(0, 3)->counts.teams_taken, 0u);
  waits_no_longer(worker(1, 0));
  EXPECT_TRUE(others_have_ready_thread(worker(1, 0), Far::kIfItIsTime, &is_far));
  EXPECT_EQ(team_of(steal_ready_thread(worker(1, 0))), team);
}

TEST_F(WaitingThreads, OfATeamAreTakenAllAndStayWhereTheyAreTaken) {
  Bubble* team = begin(0, 4, 3);
  waits_no_longer(worker(1, 1));
  EXPECT_EQ(team_of(steal_ready_thread(worker(1, 1))), team);
  EXPECT_EQ(waiting_on(0, team), 0u);
  EXPECT_EQ(waiting_on(1, team), 2u);
  EXPECT_EQ(worker(1, 1)->counts.teams_taken, 1u);
  EXPECT_EQ(team->adoption.adopter(), node_of_worker(worker(1, 0)));
  // It does not go for another one at once.
  Bubble* other = begin(0, 4, 1);
  EXPECT_EQ(steal_ready_thread(worker(1, 1)), nullptr);
  // At home they wait for them as elsewhere; neighbours of who has taken them need not.
  EXPECT_EQ(team_of(steal_ready_thread(worker(0, 1))), other);
  EXPECT_EQ(steal_ready_thread(worker(0, 1)), nullptr);
  EXPECT_EQ(steal_ready_thread(worker(2, 0)), nullptr);
  EXPECT_EQ(team_of(steal_ready_thread(worker(1, 3))), team);
  // Back: it is nobody's any more.
  waits_no_longer(worker(0, 2));
  EXPECT_EQ(team_of(steal_ready_thread(worker(0, 2))), team);
  EXPECT_FALSE(team->adoption.is_known());
}

TEST_F(WaitingThreads, OfSeveralTeamsTheLargestThatNobodyHasAdopted) {
  begin(0, 4, 1);
  Bubble* adopted = begin(1, 4, 3);
  Bubble* largest = begin(2, 4, 2);
  adopted->adoption.adopted_by(node_of_worker(worker(2, 0)));
  waits_no_longer(worker(3, 0));
  EXPECT_EQ(team_of(steal_ready_thread(worker(3, 0))), largest);
  EXPECT_EQ(waiting_on(2, largest), 0u);
  EXPECT_EQ(waiting_on(3, largest), 1u);
}

TEST_F(WaitingThreads, NoMoreThanTheNodeHasPusFor) {
  Bubble* team = begin(0, 20, 12);
  waits_no_longer(worker(3, 0));
  EXPECT_EQ(team_of(steal_ready_thread(worker(3, 0))), team);
  EXPECT_EQ(waiting_on(3, team), kPusOfNode - 1);
}

TEST_F(WaitingThreads, OfTeamsThatPollAreTakenOneByOne) {
  Bubble* team = begin(0, 4, 3);
  team->together.store(Together::kPolls);
  waits_no_longer(worker(1, 0));
  EXPECT_EQ(team_of(steal_ready_thread(worker(1, 0))), team);
  EXPECT_EQ(waiting_on(0, team), 2u);
  EXPECT_FALSE(team->adoption.is_known());
  EXPECT_EQ(worker_with_team(worker(0, 0), member_of(team)), worker(0, 0));
}

TEST_F(WaitingThreads, LongerQueuesOfOtherNodesAreNoReasonToBreakATeam) {
  for (const std::uint32_t node : {0u, 2u, 3u}) begin(node, 16, 16);
  EXPECT_EQ(steal_from_longer_queue(worker(1, 0)), nullptr);
  Thread* own;
  while ((own = static_cast<Thread*>(worker(0, 0)->ready.first)) != nullptr)
    worker(0, 0)->ready.remove_locked(own);
  EXPECT_NE(steal_from_longer_queue(worker(0, 0)), nullptr);
}

TEST_F(WaitingThreads, WhatRunsFollows) {
  Bubble* team = begin(0, 4, 2);
  Thread* runs = member_of(team);
  EXPECT_EQ(worker_with_team(worker(0, 3), runs), worker(0, 3)) << "it is at home";
  for (const std::uint32_t pu : {2u, 3u}) idles(worker(1, pu));
  waits_no_longer(worker(1, 0));
  ASSERT_EQ(team_of(steal_ready_thread(worker(1, 0))), team);
  // A neighbour was called; the other one stays for what runs, and goes for no other team meanwhile.
  EXPECT_EQ(worker(1, 2)->mail.load() != nullptr, worker(1, 3)->mail.load() == nullptr);
  Worker* free = worker(1, worker(1, 2)->mail.load() == nullptr ? 2 : 3);
  begin(2, 4, 3);
  waits_no_longer(free);
  EXPECT_FALSE(may_go_far(free));
  EXPECT_EQ(worker_with_team(worker(0, 3), runs), free);
  EXPECT_EQ(worker_with_team(worker(2, 3), runs), free);
  EXPECT_EQ(worker_with_team(worker(1, 1), runs), worker(1, 1)) << "it is there already";
  // All there have something to do, and it would wait for as long as here.
  free->idle.store(0);
  EXPECT_EQ(worker_with_team(worker(0, 3), runs), worker(0, 3));
  worker(0, 3)->ready.enqueue(member_of(teams_.back().get()));
  EXPECT_EQ(worker_with_team(worker(0, 3), runs), worker(0, 3));
  // For less.
  worker(0, 3)->ready.enqueue(member_of(teams_.back().get()));
  EXPECT_NE(worker_with_team(worker(0, 3), runs), worker(0, 3));
}

TEST_F(WholeTeams, TicksAtHomeLeaveTheGhostsOfAdoptedTeamsForAWhile) {
  Bubble* team = open(0, 4);
  Worker* home = worker(0, 0);
  EXPECT_FALSE(leaves_ghosts(home));
  team->adoption.adopted_by(node_of_worker(worker(1, 0)));
  int begun = 0;
  for (int tick = 0; tick < 80; ++tick) begun += leaves_ghosts(home) ? 0 : 1;
  // Whoever waits for them in a loop that nobody has found out gets on, too.
  EXPECT_EQ(begun, 10);
  team->together.store(Together::kPolls);
  for (int tick = 0; tick < 8; ++tick) EXPECT_FALSE(leaves_ghosts(home));
  team->together.store(Together::kNo);
  team->adoption.adopted_by(node_of_worker(home));
  for (int tick = 0; tick < 8; ++tick) EXPECT_FALSE(leaves_ghosts(home));
}

TEST_F(WaitingThreads, WhereAllIsNearAreTakenOneByOne) {
  Bubble* team = begin(0, 4, 3);
  team->near.store(kReachAll);
  EXPECT_EQ(team_of(steal_ready_thread(worker(3, 0))), team);
  EXPECT_EQ(waiting_on(0, team), 2u);
  EXPECT_FALSE(team->adoption.is_known());
}

}  // namespace
