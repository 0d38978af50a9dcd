// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Helpers of a team under the checker: who holds a unit may look at the team, and the object is not
// used for the next one before the last has left.
#include <functional>
#include <memory>

#include "checker/expect.h"
#include "sched/helper_protocol.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;

constexpr int kTeams = 2;

struct Setting {
  int helpers = 1;
  int tries = 2;             // of each helper
  bool early_look = false;   // planted: the helper looks at the team before it has a unit
  bool no_close = false;     // planted: the opener does not wait for helpers
  bool early_leave = false;  // planted: the helper gives its unit back before it looks last
};

struct Team {
  bosk::sched::HelperCount<A> helpers;
  A::plain<int> number;
};

void opener(Team& t, const Setting& s) {
  for (int number = 0; number < kTeams; ++number) {
    MODEL_ASSERT(!t.helpers.is_open() || s.no_close);
    t.number = number;
    t.helpers.open();  // by a member that queues a task
    if (s.no_close) continue;
    t.helpers.close();
    while (t.helpers.left() != 0) A::pause();
  }
}

void helper(Team& t, const Setting& s) {
  for (int i = 0; i < s.tries; ++i) {
    if (s.early_look) {
      const int number = t.number;
      MODEL_ASSERT(number >= 0);
    }
    if (!t.helpers.join()) continue;
    if (s.early_leave) t.helpers.leave();
    const int number = t.number;
    MODEL_ASSERT(number >= 0 && number < kTeams);
    if (!s.early_leave) t.helpers.leave();
  }
}

std::function<void()> regions(const Setting& s) {
  return [s] {
    auto t = std::make_shared<Team>();
    t->number = 0;
    model::spawn([=] { opener(*t, s); });
    for (int i = 0; i < s.helpers; ++i) model::spawn([=] { helper(*t, s); });
    model::at_end([=] { MODEL_ASSERT(s.no_close || t->helpers.left() == 0); });
  };
}

TEST(Help, OneHelper) { model::expect_proved({}, regions({})); }
TEST(Help, TwoHelpers) { model::expect_big_proved({}, regions({.helpers = 2, .tries = 1})); }

TEST(HelpPlanted, LooksWithoutAUnit) {
  model::expect_failure({}, regions({.early_look = true}), "data race");
}
TEST(HelpPlanted, OpenerDoesNotWait) {
  model::expect_failure({}, regions({.no_close = true}), "data race");
}
TEST(HelpPlanted, LooksAfterItsUnitIsGone) {
  model::expect_failure({}, regions({.early_leave = true}), "data race");
}

TEST(HelpPlanted, EveryWeakenedOrderIsCaught) {
  if (model::kSlowBuild) GTEST_SKIP() << "mutation runs in optimised builds only";
  const std::vector<std::function<void()>> bodies = {regions({}),
                                                     regions({.helpers = 2, .tries = 1})};
  const std::vector<model::Mutant> mutants = model::mutate({}, bodies, "helper_protocol.h");
  int survivors = 0;
  for (const model::Mutant& m : mutants) {
    std::cout << m << "\n";
    survivors += !m.caught;
  }
  EXPECT_EQ(mutants.size(), 5u);
  // leave() is stronger than this protocol needs: the wake-up after it (address_wait.h) asks for a full
  // fence.
  EXPECT_EQ(survivors, 1);
}

}  // namespace
