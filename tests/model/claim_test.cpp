// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Claiming and joining ghosts under the checker: thieves and the opener of a team object that is
// used for two teams, one after the other.
#include "sched/claim_protocol.h"
#include "sched/join_protocol.h"

#include <memory>
#include <string>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using bosk::sched::Claim;

constexpr int kTeams = 2;
constexpr int kMembers = 4;

struct Setting {
  int thieves = 1;
  int members = 2;
  int tries = 2;                // of the first thief
  int other_tries = 1;          // of the others
  std::uint32_t chunk = 1;      // that a thief takes
  bool last_completes = false;  // who finishes last lets the opener go on; else the opener polls
  bool chooses = false;         // the thief looks whose team it is before it takes anything
  bool same_team = true;        // planted when false: it then takes from whatever team is open
  bool early_read = false;      // planted: the thief reads the team before its claim
  bool early_finish = false;    // planted: reports its members before it ran them
  bool early_open = false;      // planted: the claim word is opened before the fields are written
  bool no_join = false;         // planted: the opener does not wait for the thieves' members
  bool take_back = true;        // planted when false: the opener overwrites what it did not claim
};

/// One type-stable object; which team it is now is a plain field.
struct Team {
  bosk::sched::ClaimWord<A> ghosts;
  bosk::sched::JoinCount<A> join;
  A::atomic<int> joined;  // teams that their last member has completed
  A::atomic<int> owner;   // may be looked at before a claim
  A::plain<int> team;
  A::plain<int> ran[kTeams][kMembers];  // a member that runs twice is a data race, or a 2
};

void run_members(Team& t, int team, const Claim& claim) {
  for (std::uint32_t i = claim.index; i < claim.index + claim.count; ++i)
    t.ran[team][i] = t.ran[team][i] + 1;
}

void check_members(Team& t, int team, int members) {
  for (int i = 0; i < members; ++i) MODEL_ASSERT(t.ran[team][i] == 1);
}

void report(Team& t, const Setting& s, int team, std::uint32_t batch) {
  if (!t.join.finish(batch) || !s.last_completes) return;
  check_members(t, team, s.members);
  t.joined.store(team + 1, release);
}

void opener(Team& t, const Setting& s) {
  const auto members = static_cast<std::uint32_t>(s.members);
  for (int team = 0; team < kTeams; ++team) {
    if (s.early_open) t.ghosts.open(members, 0);
    t.team = team;
    t.owner.store(team, relaxed);
    t.join.open(members);
    if (!s.early_open) t.ghosts.open(members, 0);
    std::uint32_t batch = 0;
    while (const Claim claim = t.ghosts.claim(1)) {
      run_members(t, team, claim);
      batch += claim.count;
      if (!s.take_back) break;
    }
    if (s.no_join || !s.take_back) continue;
    // As the scheduler does: the cheap way if nobody else is left, else it suspends itself.
    if (t.join.try_last(batch) || t.join.suspend(batch)) {
      check_members(t, team, s.members);
      continue;
    }
    while (s.last_completes ? t.joined.load(acquire) <= team : !t.join.done()) A::pause();
    check_members(t, team, s.members);
  }
}

void thief(Team& t, const Setting& s, int tries) {
  for (int i = 0; i < tries; ++i) {
    const int early = s.early_read ? t.team.get() : 0;
    const std::uint32_t generation = s.chooses ? t.ghosts.generation() : 0;
    const int owner = s.chooses ? t.owner.load(relaxed) : 0;
    const Claim claim =
        s.chooses && s.same_team ? t.ghosts.claim_of(generation, s.chunk) : t.ghosts.claim(s.chunk);
    if (!claim) continue;
    if (s.chooses) MODEL_ASSERT(owner == t.team);
    const int team = s.early_read ? early : t.team.get();
    if (s.early_finish) report(t, s, team, claim.count);
    run_members(t, team, claim);
    if (!s.early_finish) report(t, s, team, claim.count);
  }
}

std::function<void()> teams(const Setting& s) {
  return [s] {
    auto t = std::make_shared<Team>();
    model::spawn([=] { opener(*t, s); });
    for (int i = 0; i < s.thieves; ++i)
      model::spawn([=] { thief(*t, s, i == 0 ? s.tries : s.other_tries); });
    model::at_end([=] {
      for (int team = 0; team < kTeams; ++team)
        for (int i = 0; i < s.members; ++i) MODEL_ASSERT(t->ran[team][i] == 1);
    });
  };
}

TEST(Claim, OneThiefOnTwoTeams) {
  model::expect_proved({}, teams({}));
  model::expect_proved({}, teams({.last_completes = true}));
}
TEST(Claim, OneThiefThatTakesSeveral) {
  model::expect_big_proved({}, teams({.members = 3, .tries = 3, .chunk = 2}));
}
TEST(Claim, WeakExchangeThatFailsForNoReason) {
  model::expect_big_proved({.spurious_cas = 1}, teams({}));
}
TEST(Claim, TwoThievesOnTwoTeams) {
  model::expect_big_proved({}, teams({.thieves = 2, .tries = 1}));
  model::expect_big_proved({}, teams({.thieves = 2, .tries = 1, .last_completes = true}));
}
TEST(Claim, ThiefThatLooksBeforeItTakes) { model::expect_big_proved({}, teams({.chooses = true})); }
TEST(Claim, TwoThievesAtRandom) {
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 5},
                     teams({.thieves = 2, .members = 4, .tries = 4, .other_tries = 4, .chunk = 2}));
  EXPECT_FALSE(r.failed) << r.failure;
}

// ---- planted bugs -------------------------------------------------------------------------------

void expect_caught(const Setting& s, const std::string& text) {
  model::expect_failure({}, teams(s), text);
}
TEST(ClaimPlanted, ThiefReadsTheTeamBeforeItsClaim) {
  expect_caught({.early_read = true}, "data race");
}
TEST(ClaimPlanted, MembersReportedBeforeTheyRan) {
  expect_caught({.early_finish = true}, "data race");
}
TEST(ClaimPlanted, OpenedBeforeTheFieldsAreWritten) {
  expect_caught({.early_open = true}, "data race");
}
TEST(ClaimPlanted, NextTeamWithoutAJoin) { expect_caught({.no_join = true}, "data race"); }
TEST(ClaimPlanted, OpenedOverUnclaimedMembers) {
  expect_caught({.take_back = false}, "assertion failed");
}
TEST(ClaimPlanted, LookedAtOneTeamAndTookFromAnother) {
  expect_caught({.chooses = true, .same_team = false}, "assertion failed: owner == t.team");
}

TEST(ClaimPlanted, EveryWeakenedOrderIsCaught) {
  // open's release, claim's acquire, generation's acquire.
  model::expect_every_order_matters(
      {}, {teams({}), teams({.last_completes = true}), teams({.chooses = true})},
      "claim_protocol.h", 3);
}

}  // namespace
