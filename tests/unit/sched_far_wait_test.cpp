// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long workers leave the ghosts of other nodes alone, and what comes of it, in virtual time.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "sched/far_wait.h"

namespace {

using bosk::sched::FarWait;

constexpr std::uint64_t kFresh = 1000;
constexpr std::uint64_t kMost = 100'000;

TEST(FarWait, LastsAsLongAsTheWorkBefore) {
  FarWait wait;
  EXPECT_EQ(wait.at(), FarWait::kNotYet);
  wait.begin(50, kFresh, kMost);
  EXPECT_EQ(wait.at(), 50 + kFresh);
  wait.end(100, false);
  EXPECT_EQ(wait.at(), FarWait::kNotYet);
  wait.begin(400, kFresh, kMost);
  EXPECT_EQ(wait.at(), 400u + 300);
  wait.end(500, false);
  wait.begin(500 + 10 * kMost, kFresh, kMost);
  EXPECT_EQ(wait.at(), 500 + 10 * kMost + kMost);
}

TEST(FarWait, ForPartsIsLongerByTheWorkBefore) {
  FarWait wait;
  EXPECT_EQ(wait.at_for_parts(), FarWait::kNotYet);
  wait.begin(50, kFresh, kMost);
  EXPECT_EQ(wait.at_for_parts(), 50 + 2 * kFresh);
  wait.end(100, true);
  wait.taken();
  EXPECT_EQ(wait.at_for_parts(), FarWait::kNotYet);
  // Also where it goes for whole teams sooner.
  wait.begin(500, kFresh, kMost);
  EXPECT_EQ(wait.at(), 500u + 100);
  EXPECT_EQ(wait.at_for_parts(), 600u + 400);
  wait.end(1000, false);
  wait.begin(10 * kMost, kFresh, kMost);
  EXPECT_EQ(wait.at_for_parts(), 12 * kMost);
}

TEST(FarWait, IsShorterForWhoGoesOnToHelpFarAway) {
  FarWait wait;
  wait.begin(1, kFresh, kMost);
  // It may take what it has found.
  wait.end(2000, true);
  EXPECT_EQ(wait.at(), 1 + kFresh);
  std::uint64_t now = 2000;
  for (const std::uint64_t waits : {250, 250, 250, 1000, 250, 250, 250, 1000, 250}) {
    wait.taken();
    EXPECT_EQ(wait.at(), FarWait::kNotYet);
    now += 1000;
    wait.begin(now, kFresh, kMost);
    EXPECT_EQ(wait.at(), now + waits);
    wait.end(now, true);
  }
  wait.end(now, false);
  wait.begin(now + 1000, kFresh, kMost);
  EXPECT_EQ(wait.at(), now + 1000 + 1000);
}

TEST(FarWait, GoesOnIfTheWorkerHasOnlyLooked) {
  FarWait wait;
  wait.begin(1, kFresh, kMost);
  wait.end(1000, false);
  wait.begin(2600, kFresh, kMost);
  const std::uint64_t due = wait.at();
  EXPECT_EQ(due, 2600u + 1600);
  // Somebody was faster.
  wait.end(2700, false);
  wait.begin(2710, kFresh, kMost);
  EXPECT_EQ(wait.at(), due);
  // But a program may go on with regions that are shorter by any factor.
  for (int i = 0; i < 20; ++i) {
    wait.end(5000, false);
    wait.begin(5010, kFresh, kMost);
  }
  EXPECT_EQ(wait.at(), 5010u + 10);
}

/// Two nodes with an opener and a helper each. Openers open teams of two one after the other; what nobody has taken
/// when an opener's own member has ended it runs itself. All members take the same time.
class TwoNodes {
 public:
  static constexpr std::uint64_t kMember = 1000;
  static constexpr std::uint64_t kGap = 10;  ///< between two regions

  /// In the beginning each helper runs a ghost of the other node. The second node's regions are late by `phase`.
  explicit TwoNodes(std::uint64_t phase, bool waits) : waits_(waits) {
    teams_ = {{{kMember, 0, true, 0}, {kMember + phase, 0, true, 0}}};
    helpers_[0].start(1, kMember + phase);
    helpers_[1].start(0, kMember);
    for (Helper& helper : helpers_) {
      helper.wait.begin(0, 0, kMost);
      helper.wait.end(1, true);
      helper.wait.taken();
    }
    teams_[0].ghost_ends = helpers_[1].busy_until;
    teams_[1].ghost_ends = helpers_[0].busy_until;
  }

  /// Of `steps` of time; returns how many ghosts were run by helpers, and counts those of them that were at home.
  int run(std::uint64_t steps, int* home) {
    int run = 0;
    *home = 0;
    for (const std::uint64_t end = now_ + steps; now_ < end; ++now_) {
      for (Team& team : teams_) step(&team);
      for (int i = 0; i < 2; ++i) {
        const int team = step(i);
        run += team >= 0;
        *home += team == i;
      }
    }
    return run;
  }

 private:
  struct Team {
    std::uint64_t opener_ends;  ///< its own member, or a ghost
    std::uint64_t ghost_ends;
    bool taken;
    std::uint64_t opens;  ///< the next region; 0: one is open
  };
  struct Helper {
    int team = -1;  ///< whose ghost it runs; -1: it idles
    std::uint64_t busy_until = 0;
    FarWait wait;
    void start(int at, std::uint64_t until) {
      team = at;
      busy_until = until;
    }
  };

  void step(Team* team) {
    if (team->opens != 0) {
      if (now_ < team->opens) return;
      *team = {now_ + kMember, 0, false, 0};
    } else if (now_ >= team->opener_ends) {
      if (!team->taken) {
        team->taken = true;
        team->opener_ends = now_ + kMember;
      } else if (now_ >= team->ghost_ends) {
        team->opens = now_ + kGap;
      }
    }
  }

  /// Returns whose ghost the helper takes; -1: none.
  int step(int which) {
    Helper& helper = helpers_[static_cast<std::size_t>(which)];
    if (helper.team >= 0) {
      if (now_ < helper.busy_until) return -1;
      helper.team = -1;
      helper.wait.begin(now_, kFresh, kMost);
    }
    for (const int team : {which, 1 - which}) {
      Team& t = teams_[static_cast<std::size_t>(team)];
      const bool far = team != which;
      if (t.opens != 0 || t.taken || (far && waits_ && now_ < helper.wait.at())) continue;
      helper.wait.end(now_, far);
      helper.wait.taken();
      helper.start(team, now_ + kMember);
      t.taken = true;
      t.ghost_ends = helper.busy_until;
      return team;
    }
    return -1;
  }

  bool waits_;
  std::uint64_t now_ = 1;
  std::array<Team, 2> teams_;
  std::array<Helper, 2> helpers_;
};

TEST(FarWait, LetsWorkersThatHaveChangedPlacesFindBack) {
  for (std::uint64_t phase = 25; phase < TwoNodes::kMember; phase += 50) {
    int home;
    TwoNodes machine(phase, true);
    machine.run(30 * TwoNodes::kMember, &home);
    const int run = machine.run(100 * TwoNodes::kMember, &home);
    EXPECT_GT(run, 190) << "phase " << phase;
    EXPECT_EQ(home, run) << "phase " << phase;
    // Without, whoever has gone far stays there.
    TwoNodes impatient(phase, false);
    impatient.run(30 * TwoNodes::kMember, &home);
    EXPECT_GT(impatient.run(100 * TwoNodes::kMember, &home), 190) << "phase " << phase;
    EXPECT_EQ(home, 0) << "phase " << phase;
  }
}

TEST(FarWait, CostsLessThanAThirdOfTheTimeOfWhoHelpsFarAwayForGood) {
  FarWait wait;
  std::uint64_t now = 1;
  std::uint64_t worked = 0;
  wait.begin(now, kFresh, kMost);
  for (int i = 0; i < 1000; ++i) {
    now = wait.at();
    wait.end(now, true);
    wait.taken();
    now += 300;
    worked += 300;
    wait.begin(now, kFresh, kMost);
  }
  EXPECT_GT(3 * worked, 2 * (now - kFresh - 1));
}

}  // namespace
