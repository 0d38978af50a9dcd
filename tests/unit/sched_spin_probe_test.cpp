// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sched/spins/probe.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/cpu.h"
#include "sched/thread.h"

namespace {

using bosk::sched::SpinProbe;
using bosk::sched::Thread;
using enum SpinProbe::Verdict;

/// What a tick learns in the end. How many looks it took.
struct Tick {
  SpinProbe::Verdict verdict;
  uint32_t looks;
};

const uint64_t kUs = bosk::base::cycles_per_microsecond();

/// A worker's probe, and when ticks come to it.
class Probe {
 public:
  SpinProbe::Verdict look(Thread* thread, uintptr_t pc, uint64_t state, bool is_known = false) {
    for (;;) {
      const auto verdict = probe_.look(thread, {pc, state, behind_call}, now_, absences_, is_known);
      if (verdict != kLookAgain) {
        now_ += 1000 * kUs;
        return verdict;
      }
      const uint64_t ns = probe_.end_look(now_, absences_);
      absences_ += loses_cpu ? 1 : 0;
      const uint64_t asked = ns * kUs / 1000 + late;
      now_ += asked > least ? asked : least;
      // It comes to measure.
      if (ns != 0) return verdict;
    }
  }
  /// `state(look)` is what each look sees.
  Tick tick(Thread* thread, uintptr_t pc, const std::function<uint64_t(uint32_t)>& state) {
    for (uint32_t looks = 1;; ++looks) {
      const auto verdict = look(thread, pc, state(looks));
      if (verdict != kLookAgain) return {verdict, looks};
    }
  }
  bool get_on() const { return probe_.get_on(); }

  uint64_t least = kUs;    ///< from one tick to the next
  uint64_t late = 0;       ///< than asked for
  bool loses_cpu = false;  ///< between any two looks
  bool behind_call = false;

 private:
  SpinProbe probe_;
  uint64_t now_ = 1000 * kUs;
  uint64_t absences_ = 1;
};
Tick tick(Probe& probe, Thread* thread, uintptr_t pc,
          const std::function<uint64_t(uint32_t)>& state) {
  return probe.tick(thread, pc, state);
}

uint64_t counter = 0;
uint64_t changing(uint32_t) { return ++counter; }

TEST(SpinProbe, OneTickTellsNothing) {
  Thread thread;
  Probe probe;
  const Tick first = tick(probe, &thread, 0x1000, [](uint32_t) { return 7; });
  EXPECT_EQ(first.verdict, kComputes);
  EXPECT_EQ(first.looks, 1u);
}

TEST(SpinProbe, SameStateThriceNearTheLastTickSpins) {
  Thread thread;
  Probe probe;
  tick(probe, &thread, 0x1000, changing);
  const Tick second = tick(probe, &thread, 0x1010, [](uint32_t) { return 7; });
  EXPECT_EQ(second.verdict, kSpins);
  EXPECT_EQ(second.looks, 3u);
}

TEST(SpinProbe, MoreOftenIfTicksTakeNotMuchLess) {
  Thread thread;
  Probe probe;
  probe.least = 3 * kUs;
  tick(probe, &thread, 0x1000, changing);
  const Tick second = tick(probe, &thread, 0x1010, [](uint32_t) { return 7; });
  EXPECT_EQ(second.verdict, kSpins);
  EXPECT_EQ(second.looks, 7u);
}

TEST(SpinProbe, TwiceIsEnoughAtAnotherInstruction) {
  Thread thread;
  Probe probe;
  probe.least = 3 * kUs;
  tick(probe, &thread, 0x1000, changing);
  EXPECT_EQ(probe.look(&thread, 0x1010, 7), kLookAgain);
  EXPECT_EQ(probe.look(&thread, 0x1013, 7), kSpins);
}

TEST(SpinProbe, LoopOfSeveralInstructionsIsFoundOut) {
  Thread thread;
  Probe probe;
  tick(probe, &thread, 0x1000, changing);
  // The looks meet three instructions of the loop in turn.
  const Tick second = tick(probe, &thread, 0x1000, [](uint32_t look) { return look % 3; });
  EXPECT_EQ(second.verdict, kSpins);
  EXPECT_EQ(second.looks, 4u);
}

TEST(SpinProbe, WhoIsFoundWhereItSpunBeforeNeedsNoSecondLook) {
  Thread thread;
  Probe probe;
  tick(probe, &thread, 0x1000, changing);
  tick(probe, &thread, 0x1010, [](uint32_t) { return 7; });
  const Tick again = tick(probe, &thread, 0x1010, [](uint32_t) { return 7; });
  EXPECT_EQ(again.verdict, kSpins);
  EXPECT_EQ(again.looks, 1u);
  // In the same state somewhere else it does something else.
  EXPECT_EQ(tick(probe, &thread, 0x9000, [](uint32_t) { return 7; }).verdict, kComputes);
}

TEST(SpinProbe, TellsWhetherThoseThatTakeTurnsGetOn) {
  Thread threads[3];
  Probe probe;
  EXPECT_TRUE(probe.get_on());
  const auto round = [&](uint64_t waited_for) {
    for (Thread& thread : threads) {
      const uint64_t state = 100 * static_cast<uint64_t>(&thread - threads) + waited_for;
      tick(probe, &thread, 0x1000, [=](uint32_t) { return state; });
    }
  };
  for (uint64_t i = 1; i < 50; ++i) round(i);
  EXPECT_TRUE(probe.get_on());
  for (int i = 0; i < 50; ++i) round(50);
  EXPECT_FALSE(probe.get_on());
  round(51);
  EXPECT_TRUE(probe.get_on());
}

TEST(SpinProbe, ElsewhereIsNotLookedAtAgain) {
  Thread thread;
  Probe probe;
  for (uintptr_t pc = 0x1000; pc < 0x9000; pc += 0x1000)
    EXPECT_EQ(probe.look(&thread, pc, 7), kComputes);
}

TEST(SpinProbe, ThreadsThatComputeAreLeftInPeace) {
  Thread thread;
  Probe probe;
  uint32_t looks = 0;
  constexpr uint32_t kTicks = 1000;
  for (uint32_t i = 0; i < kTicks; ++i) {
    const Tick t = tick(probe, &thread, 0x1000, changing);
    EXPECT_EQ(t.verdict, kComputes);
    looks += t.looks;
  }
  EXPECT_LT(looks, kTicks + kTicks / 5);
}

TEST(SpinProbe, FindsItOutWhenAComputationBecomesAWait) {
  Thread thread;
  Probe probe;
  for (int i = 0; i < 1000; ++i) tick(probe, &thread, 0x1000, changing);
  // Elsewhere at once, in the same place after the pause.
  int ticks = 0;
  while (tick(probe, &thread, 0x1000, [](uint32_t) { return 7; }).verdict != kSpins) ++ticks;
  EXPECT_LE(ticks, 64);
  for (int i = 0; i < 1000; ++i) tick(probe, &thread, 0x1000, changing);
  tick(probe, &thread, 0x8000, changing);
  EXPECT_EQ(tick(probe, &thread, 0x8000, [](uint32_t) { return 7; }).verdict, kSpins);
}

TEST(SpinProbe, AnotherThreadsLookIsNotMistakenForThisOnes) {
  Thread one, other;
  Probe probe;
  const auto same = [](uint32_t) { return 7; };
  tick(probe, &one, 0x1000, same);
  tick(probe, &other, 0x1000, same);
  EXPECT_EQ(probe.look(&one, 0x1000, 7), kLookAgain);
  // The worker went on with the other one meanwhile.
  EXPECT_EQ(probe.look(&other, 0x1000, 7), kLookAgain);
  EXPECT_EQ(probe.look(&other, 0x1003, 7), kSpins);
}

TEST(SpinProbe, WhoHadNoTimeForAnythingComputes) {
  const auto same = [](uint32_t) { return 7; };
  // Ticks that follow each other as fast as they can, whatever is asked for.
  Thread thread;
  SpinProbe fast;
  uint64_t now = 1000 * kUs;
  fast.look(&thread, {0x1000, 1}, now, 0);
  auto verdict = kLookAgain;
  for (int looks = 0; verdict == kLookAgain; ++looks) {
    ASSERT_LT(looks, 100);
    now += 50 * kUs;
    verdict = fast.look(&thread, {0x1000, 7}, now, 0);
    fast.end_look(now, 0);
  }
  EXPECT_EQ(verdict, kComputes);
  // Ticks that come when the thread, which has lost its CPU before it had done anything, has it back.
  Thread other;
  Probe late;
  tick(late, &other, 0x1000, changing);
  tick(late, &other, 0x1000, changing);
  late.late = 3000 * kUs;
  tick(late, &other, 0x9000, changing);
  tick(late, &other, 0x1000, changing);
  EXPECT_EQ(tick(late, &other, 0x1000, same).verdict, kComputes);
}

TEST(SpinProbe, WhoHasLostItsCpuForAMomentMayHaveHadNoTime) {
  const auto same = [](uint32_t) { return 7; };
  Thread thread;
  Probe probe;
  tick(probe, &thread, 0x1000, changing);
  tick(probe, &thread, 0x1000, changing);
  tick(probe, &thread, 0x9000, changing);
  tick(probe, &thread, 0x1000, changing);
  probe.loses_cpu = true;
  EXPECT_EQ(tick(probe, &thread, 0x1000, same).verdict, kComputes);
  // It has it all the time.
  Thread other;
  probe.loses_cpu = false;
  tick(probe, &other, 0x1000, changing);
  EXPECT_EQ(tick(probe, &other, 0x1000, same).verdict, kSpins);
}

TEST(SpinProbe, WhereACallHasReturnedLooksThatAreCloseTellNothing) {
  const auto same = [](uint32_t) { return 7; };
  Thread thread;
  Probe probe;
  // Ticks take so long here that none is many times that.
  probe.least = 10 * kUs;
  tick(probe, &thread, 0x1000, changing);
  tick(probe, &thread, 0x1000, changing);
  tick(probe, &thread, 0x9000, changing);
  tick(probe, &thread, 0x1000, changing);
  probe.behind_call = true;
  EXPECT_EQ(tick(probe, &thread, 0x1000, same).verdict, kComputes);
  Thread other;
  probe.behind_call = false;
  tick(probe, &other, 0x1000, changing);
  EXPECT_EQ(tick(probe, &other, 0x1000, same).verdict, kSpins);
}

TEST(SpinProbe, WhoIsSomewhereElseInItsLoopHasRun) {
  Thread thread;
  Probe probe;
  tick(probe, &thread, 0x1000, changing);
  tick(probe, &thread, 0x1000, changing);
  probe.late = 3000 * kUs;
  tick(probe, &thread, 0x9000, changing);
  tick(probe, &thread, 0x1000, changing);
  EXPECT_EQ(probe.look(&thread, 0x1000, 7), kLookAgain);
  EXPECT_EQ(probe.look(&thread, 0x1003, 7), kSpins);
}

TEST(SpinProbe, LooksAreFurtherApartWhereTicksTakeLonger) {
  Thread thread;
  Probe probe;
  probe.least = 100 * kUs;
  tick(probe, &thread, 0x1000, changing);
  const Tick second = tick(probe, &thread, 0x1000, [](uint32_t) { return 7; });
  EXPECT_EQ(second.verdict, kSpins);
  EXPECT_EQ(second.looks, 7u);
}

TEST(SpinProbe, WhereMembersOfTheTeamPolledBeforeOneLookIsEnough) {
  Thread thread;
  Probe probe;
  EXPECT_EQ(probe.look(&thread, 0x1000, 1, true), kSpins);
  EXPECT_EQ(probe.look(&thread, 0x9000, 2, true), kSpins);
  EXPECT_EQ(probe.look(&thread, 0x9000, 3, false), kLookAgain);
}

}  // namespace
