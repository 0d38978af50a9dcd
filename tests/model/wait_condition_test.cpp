// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stranger's look at what a thread waits for under the checker: what the test reads is never gone.
#include "sched/wait_condition.h"

#include <memory>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;

struct Waiter {
  A::plain<int> target{0};  // on its stack: written by itself when it does not wait
  A::atomic<int> reached{0};
};

bool is_reached(Waiter* waiter) { return waiter->reached.load(relaxed) >= waiter->target; }

struct Setting {
  int waits = 1;
  bool does_not_end = false;  // planted: it goes on as soon as the condition holds
  bool says_nothing = false;  // planted: the stranger does not say where it looks
};

struct State {
  Waiter waiter;
  bosk::sched::WaitCondition<A, Waiter> condition;
  bosk::sched::StrangerLook<A> look;
};

/// The worker is the waiter's own: between set() and clear() it looks itself.
std::function<void()> waits(const Setting& setting) {
  return [=] {
    auto s = std::make_shared<State>();
    model::spawn([=] {
      for (int i = 1; i <= setting.waits; ++i) {
        s->waiter.target = i;
        s->condition.set(is_reached);
        s->waiter.reached.store(i, relaxed);
        if (s->condition.holds(&s->waiter)) s->condition.clear();
        if (!setting.does_not_end) s->condition.end(s->look);
      }
      s->waiter.target = -1;
    });
    model::spawn([=] {
      if (setting.says_nothing)
        s->condition.holds(&s->waiter);
      else
        s->look.holds(s->condition, &s->waiter);
    });
  };
}

TEST(WaitConditions, NothingIsReadThatIsGone) {
  model::expect_proved({}, waits({}));
  model::expect_proved({}, waits({.waits = 2}));
}

TEST(WaitConditionsPlanted, TheWaiterDoesNotWait) {
  model::expect_failure({}, waits({.does_not_end = true}), "race");
}
TEST(WaitConditionsPlanted, TheStrangerSaysNothing) {
  model::expect_failure({}, waits({.says_nothing = true}), "race");
}
TEST(WaitConditionsPlanted, EveryWeakenedOrderIsCaught) {
  // The barriers, set() and holds(), the end of the look and the wait for it.
  model::expect_every_order_matters({}, {waits({}), waits({.waits = 2})}, "wait_condition.h", 6);
}

}  // namespace
