// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Commands to a parked kernel thread under the checker: two givers by turns, one taker.
#include "base/command_word.h"

#include <memory>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using Word = bosk::base::CommandWord<A>;

/// The context that a giver hands over is written before the command. That the former command was
/// taken a giver learns from what the kernel thread did with it: `done`, which here stands for the
/// queue or the word on which a demoted thread or a returned role is published.
struct Parked {
  Word word;
  A::plain<int> context;
  A::atomic<int> done;
};

struct Setting {
  int commands = 2;
  bool late_context = false;  // planted: the context is written after the command
  bool out_of_turn = false;   // planted: the second giver does not know that the first was heard
  bool early_done = false;    // planted: the taker publishes before it has read what it was given
};

void taker(Parked& p, const Setting& s) {
  for (int n = 1; n <= s.commands; ++n) {
    const uint32_t command = p.word.take();
    MODEL_ASSERT(command == static_cast<uint32_t>(n));
    if (s.early_done) p.done.store(n, release);
    MODEL_ASSERT(p.context == n);
    if (!s.early_done) p.done.store(n, release);
  }
}

void giver(Parked& p, const Setting& s, int n) {
  if (!s.out_of_turn)
    while (p.done.load(acquire) != n - 1) A::pause();
  if (!s.late_context) p.context = n;
  p.word.give(static_cast<uint32_t>(n));
  if (s.late_context) p.context = n;
}

std::function<void()> handed_over(const Setting& s) {
  return [s] {
    auto p = std::make_shared<Parked>();
    model::spawn([=] { taker(*p, s); });
    // The first two by different threads; the first giver gives the third.
    model::spawn([=] {
      giver(*p, s, 1);
      if (s.commands > 2) giver(*p, s, 3);
    });
    if (s.commands > 1) model::spawn([=] { giver(*p, s, 2); });
    model::at_end([=] { MODEL_ASSERT(p->done.load(relaxed) == s.commands); });
  };
}

TEST(CommandWord, OneCommand) { model::expect_proved({}, handed_over({.commands = 1})); }
TEST(CommandWord, TwoGiversByTurns) {
  model::expect_proved({}, handed_over({}));
  model::expect_proved({.spurious_wakes = 2}, handed_over({}));
}
TEST(CommandWord, ThreeCommands) {
  model::expect_big_proved({.spurious_wakes = 1}, handed_over({.commands = 3}));
}

// ---- planted bugs -------------------------------------------------------------------------------

TEST(CommandWordPlanted, ContextWrittenAfterTheCommand) {
  model::expect_failure({}, handed_over({.commands = 1, .late_context = true}), "data race");
}
TEST(CommandWordPlanted, SecondGiverOutOfTurn) {
  model::expect_failure({}, handed_over({.out_of_turn = true}), "data race");
}
TEST(CommandWordPlanted, TakenBeforeItWasRead) {
  model::expect_failure({}, handed_over({.early_done = true}), "data race");
}
TEST(CommandWordPlanted, EveryWeakenedOrderIsCaught) {
  // take's acquire, give's release.
  model::expect_every_order_matters({}, {handed_over({})}, "command_word.h", 2);
}

}  // namespace
