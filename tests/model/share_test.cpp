// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shares under the checker: an owner takes parts of two teams, one after the other, into its share, and
// thieves take from it. A team's fields are written again as soon as its members have ended.
#include "sched/share_protocol.h"

#include <memory>
#include <string>

#include "checker/expect.h"
#include "sched/join_protocol.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using bosk::sched::Claim;

constexpr int kRegions = 2;
constexpr int kMembers = 4;

struct Setting {
  int thieves = 1;
  int tries = 1;
  int members = 2;
  int teams = 2;              // objects that the regions take turns with
  bool early_open = false;    // planted: the share is open before the team's fields are written
  bool early_reopen = false;  // planted: opened again while something is left
  bool any_team = false;      // planted: the look's team and base are read after the take
};

struct Team {
  bosk::sched::JoinCount<A> join;
  A::plain<int> region;
};

struct World {
  bosk::sched::GhostShare<A, Team> share;
  Team teams[2];
  A::plain<int> ran[kRegions][kMembers];  // a member that runs twice is a data race, or a 2
};

void run(World& w, const Team& team, const Claim& claim) {
  auto& times = w.ran[team.region.get()][claim.index];
  times = times + 1;
}

void owner(World& w, const Setting& s) {
  const auto members = static_cast<std::uint32_t>(s.members);
  for (int region = 0; region < kRegions; ++region) {
    Team& team = w.teams[region % s.teams];
    if (s.early_open) w.share.open(&team, {0, members});
    team.region = region;
    team.join.open(members + 1);
    if (!s.early_open) w.share.open(&team, {0, members});
    std::uint32_t own = 1;
    while (const Claim claim = w.share.take_of(&team)) {
      run(w, team, claim);
      ++own;
      if (s.early_reopen) break;
    }
    if (s.early_reopen) continue;
    MODEL_ASSERT(w.share.empty());
    if (team.join.try_last(own) || team.join.suspend(own)) continue;
    while (!team.join.done()) A::pause();
  }
}

void thief(World& w, const Setting& s) {
  for (int i = 0; i < s.tries; ++i) {
    auto look = w.share.look();
    if (!look) continue;
    const Claim claim = w.share.take(look);
    if (!claim) continue;
    if (s.any_team) look = w.share.look();
    if (!look) continue;
    run(w, *look.team, claim);
    look.team->join.finish(1);
  }
}

std::function<void()> regions(const Setting& s) {
  return [s] {
    auto w = std::make_shared<World>();
    model::spawn([=] { owner(*w, s); });
    for (int i = 0; i < s.thieves; ++i) model::spawn([=] { thief(*w, s); });
    model::at_end([=] {
      for (int region = 0; region < kRegions; ++region)
        for (int i = 0; i < s.members; ++i) MODEL_ASSERT(w->ran[region][i] == 1);
    });
  };
}

TEST(Share, OneThief) {
  model::expect_proved({}, regions({}));
  model::expect_proved({}, regions({.teams = 1}));
}
TEST(Share, OneThiefThatComesBack) {
  model::expect_big_proved({}, regions({.tries = 2}));
  model::expect_big_proved({}, regions({.tries = 2, .teams = 1}));
}
TEST(Share, TwoThieves) { model::expect_big_proved({}, regions({.thieves = 2})); }
TEST(Share, TwoThievesAtRandom) {
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 7},
                     regions({.thieves = 2, .tries = 4, .members = 4}));
  EXPECT_FALSE(r.failed) << r.failure;
}

// ---- planted bugs -------------------------------------------------------------------------------

TEST(SharePlanted, OpenedBeforeTheFieldsAreWritten) {
  model::expect_failure({}, regions({.early_open = true}), "data race");
}
TEST(SharePlanted, OpenedWhileSomethingIsLeft) {
  model::expect_failure({}, regions({.early_reopen = true}), "assertion failed");
}
TEST(SharePlanted, TheTeamIsReadAfterTheTake) {
  model::expect_failure({}, regions({.tries = 2, .any_team = true}), "");
}

TEST(SharePlanted, WeakenedOrdersAreCaught) {
  if (model::kSlowBuild) GTEST_SKIP() << "mutation runs in optimised builds only";
  const auto mutants = model::mutate(
      {}, {regions({}), regions({.teams = 1}), regions({.tries = 2})}, "share_protocol.h");
  int caught = 0;
  for (const model::Mutant& m : mutants) {
    std::cout << m << "\n";
    caught += m.caught ? 1 : 0;
  }
  // The release of open() and the acquire of look(). That of empty() and the release of take() forbid a
  // look that reads what is written after it: load buffering, which the checker does not explore.
  EXPECT_EQ(mutants.size(), 4u);
  EXPECT_EQ(caught, 2);
}

}  // namespace
