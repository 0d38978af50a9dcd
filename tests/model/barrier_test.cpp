// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The barrier's words under the checker: workers that arrive for several members at once, barriers
// one after the other, and the object handed on to a next team.
#include "sched/barrier_protocol.h"

#include <memory>
#include <vector>

#include "checker/expect.h"
#include "sched/claim_protocol.h"
#include "sched/join_protocol.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;

constexpr int kMostMembers = 4;
constexpr int kMostBarriers = 3;

struct Setting {
  /// Members of each worker, and how many of them arrive in one go.
  std::vector<int> members = {1, 1};
  std::vector<int> batch = {1, 1};
  int barriers = 2;
  // Planted, of worker 0:
  bool early_arrival = false;  // reports its members before they have written
  bool does_not_wait = false;  // goes on without the barrier being open
  bool late_number = false;    // asks for the barrier's number after its arrival
  bool keeps_one = false;      // waits with an arrival that it has not reported
  bool twice = false;          // reports the last batch again
};

struct Meeting {
  bosk::sched::BarrierWord<A> word;
  A::plain<int> written[kMostBarriers][kMostMembers];
};

int team_size(const Setting& s) {
  int size = 0;
  for (const int members : s.members) size += members;
  return size;
}

/// What a worker does for its group of members: each writes, then all of them arrive in batches, and
/// the worker polls for the others' sake as a carrier does.
void pass(Meeting& m, const Setting& s, int worker, int first, int number) {
  const int members = s.members[worker];
  const auto size = static_cast<uint32_t>(team_size(s));
  const bool bad = worker == 0;
  uint32_t epoch = m.word.epoch();
  if (!(bad && s.late_number)) MODEL_ASSERT(epoch == static_cast<uint32_t>(number));
  if (!(bad && s.early_arrival))
    for (int i = 0; i < members; ++i) m.written[number][first + i] = number + 1;
  bool opened = false;
  int left = bad && s.keeps_one ? members - 1 : members;
  while (left > 0) {
    const int batch = s.batch[worker] < left ? s.batch[worker] : left;
    MODEL_ASSERT(!opened);
    opened = m.word.arrive(static_cast<uint32_t>(batch), size, epoch);
    if (bad && s.twice) opened |= m.word.arrive(static_cast<uint32_t>(batch), size, epoch);
    left -= batch;
  }
  if (bad && s.early_arrival)
    for (int i = 0; i < members; ++i) m.written[number][first + i] = number + 1;
  if (bad && s.late_number) epoch = m.word.epoch();
  if (!opened && !(bad && s.does_not_wait))
    while (!m.word.is_open(epoch)) A::pause();
  for (int i = 0; i < static_cast<int>(size); ++i) MODEL_ASSERT(m.written[number][i] == number + 1);
}

std::function<void()> barriers(const Setting& s) {
  return [s] {
    auto m = std::make_shared<Meeting>();
    m->word.reset();
    int first = 0;
    for (int worker = 0; worker < static_cast<int>(s.members.size()); ++worker) {
      model::spawn([=] {
        for (int number = 0; number < s.barriers; ++number) pass(*m, s, worker, first, number);
      });
      first += s.members[static_cast<std::size_t>(worker)];
    }
    model::at_end([=] { MODEL_ASSERT(m->word.epoch() == static_cast<uint32_t>(s.barriers)); });
  };
}

TEST(Barrier, TwoWorkersThreeBarriers) { model::expect_proved({}, barriers({.barriers = 3})); }
TEST(Barrier, GroupsInBatches) {
  model::expect_proved({}, barriers({.members = {2, 2}, .batch = {2, 1}, .barriers = 3}));
}
TEST(Barrier, ThreeWorkersTwoBarriers) {
  model::expect_big_proved({}, barriers({.members = {2, 1, 1}, .batch = {2, 1, 1}}));
}
TEST(Barrier, ThreeWorkersThreeBarriersAtRandom) {
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 3},
                     barriers({.members = {2, 1, 1}, .batch = {1, 1, 1}, .barriers = 3}));
  EXPECT_FALSE(r.failed) << r.failure;
}

// ---- the object is used for one team after the other

constexpr int kTeams = 2;

/// A team as bubbles have it: member 0 is the opener, the others are ghosts that one worker each
/// claims. One barrier in each team.
struct Team {
  bosk::sched::BarrierWord<A> word;
  bosk::sched::ClaimWord<A> ghosts;
  bosk::sched::JoinCount<A> join;
  A::plain<int> number;
  A::plain<int> written[kTeams][3];
};

struct TeamSetting {
  uint32_t size = 2;
  bool late_reset = false;  // planted: the words are reset after the ghosts can be claimed
  bool no_join = false;     // planted: the object is used again while members are in the barrier
};

void meet(Team& t, int team, uint32_t index, uint32_t size) {
  const uint32_t epoch = t.word.epoch();
  MODEL_ASSERT(epoch == 0);
  t.written[team][index] = 1;
  if (!t.word.arrive(1, size, epoch))
    while (!t.word.is_open(epoch)) A::pause();
  for (uint32_t i = 0; i < size; ++i) MODEL_ASSERT(t.written[team][i] == 1);
}

void opener(Team& t, const TeamSetting& s) {
  for (int team = 0; team < kTeams; ++team) {
    t.number = team;
    if (!s.late_reset) t.word.reset();
    t.join.open(s.size);
    t.ghosts.open(s.size, 1);
    if (s.late_reset) t.word.reset();
    meet(t, team, 0, s.size);
    if (s.no_join) continue;
    if (!t.join.try_last(1) && !t.join.suspend(1))
      while (!t.join.done()) A::pause();
  }
}

void helper(Team& t, const TeamSetting& s) {
  for (int team = 0; team < kTeams; ++team) {
    bosk::sched::Claim claim;
    while (!(claim = t.ghosts.claim(1))) A::pause();
    meet(t, t.number, claim.index, s.size);
    t.join.finish(1);
  }
}

std::function<void()> teams(const TeamSetting& s) {
  return [s] {
    auto t = std::make_shared<Team>();
    model::spawn([=] { opener(*t, s); });
    for (uint32_t i = 1; i < s.size; ++i) model::spawn([=] { helper(*t, s); });
  };
}

TEST(Barrier, OneTeamAfterTheOther) { model::expect_big_proved({}, teams({})); }
TEST(Barrier, OneTeamAfterTheOtherAtRandom) {
  const model::Result r = model::explore(
      {.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 9}, teams({.size = 3}));
  EXPECT_FALSE(r.failed) << r.failure;
}

// ---- planted bugs -------------------------------------------------------------------------------

void expect_caught(const Setting& s, const std::string& text) {
  model::expect_failure({}, barriers(s), text);
}
TEST(BarrierPlanted, ArrivesBeforeItHasWritten) {
  expect_caught({.early_arrival = true}, "data race");
}
TEST(BarrierPlanted, GoesOnWithoutWaiting) {
  expect_caught({.does_not_wait = true}, "assertion failed: m.written[number][i]");
}
TEST(BarrierPlanted, AsksForTheNumberAfterArriving) {
  expect_caught({.late_number = true}, "no thread can go on");
}
TEST(BarrierPlanted, WaitsWithAnUnreportedArrival) {
  expect_caught({.members = {2, 1}, .batch = {2, 1}, .keeps_one = true}, "no thread can go on");
}
TEST(BarrierPlanted, ReportsABatchTwice) {
  expect_caught({.twice = true}, "assertion failed: m.written[number][i]");
}
TEST(BarrierPlanted, ResetAfterTheGhostsAreOpen) {
  model::expect_failure({}, teams({.late_reset = true}), "no thread can go on");
}
TEST(BarrierPlanted, NextTeamWithoutAJoin) {
  model::expect_failure({}, teams({.no_join = true}), "no thread can go on");
}

TEST(BarrierPlanted, EveryWeakenedOrderIsCaught) {
  // arrive's acq_rel (three ways) and its release of the epoch, is_open's acquire.
  model::expect_every_order_matters(
      {}, {barriers({}), barriers({.members = {1, 1, 1}, .batch = {1, 1, 1}, .barriers = 1})},
      "barrier_protocol.h", 5);
}

}  // namespace
