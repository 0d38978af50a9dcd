// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forks beside threads in a library under the checker: nobody is inside while the process forks.
#include "memory/fork_gate.h"

#include <memory>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using Gate = bosk::memory::ForkGate<A>;

struct Setting {
  int threads = 1;
  int calls = 1;
  bool does_not_ask = false;   // planted: the thread does not look whether the gate is closed
  bool does_not_wait = false;  // planted: who forks does not wait
};

struct State {
  Gate gate;
  Gate::Mark mark[2];
  A::plain<int> inside[2] = {{0},
                             {0}};  // what the library knows of the thread: the fork reads it all
};

std::function<void()> forks(const Setting& setting) {
  return [=] {
    auto s = std::make_shared<State>();
    for (int i = 0; i < setting.threads; ++i)
      model::spawn([=] {
        for (int call = 0; call < setting.calls; ++call) {
          bool stays = false;
          if (setting.does_not_ask)
            s->mark[i].store(1, relaxed);
          else
            stays = s->gate.enter(s->mark[i]);
          // It comes back to us from there.
          const bool inner_stays = s->gate.enter(s->mark[i]);
          s->gate.leave(s->mark[i], inner_stays);
          s->inside[i] = 1;
          s->inside[i] = 0;
          s->gate.leave(s->mark[i], stays);
        }
      });
    model::spawn([=] {
      s->gate.close();
      for (int i = 0; i < setting.threads && !setting.does_not_wait; ++i)
        Gate::wait_for(s->mark[i]);
      for (int i = 0; i < setting.threads; ++i) {
        MODEL_ASSERT(s->inside[i] == 0);
        s->inside[i] = 0;  // the child begins anew
      }
      s->gate.open();
    });
  };
}

TEST(ForkGates, NobodyIsInside) {
  model::expect_proved({}, forks({}));
  model::expect_proved({}, forks({.calls = 2}));
  model::expect_proved({}, forks({.threads = 2}));
}

TEST(ForkGatesPlanted, TheThreadDoesNotAsk) {
  model::expect_failure({}, forks({.does_not_ask = true}), "race");
}
TEST(ForkGatesPlanted, TheForkDoesNotWait) {
  model::expect_failure({}, forks({.does_not_wait = true}), "race");
}
TEST(ForkGatesPlanted, EveryWeakenedOrderIsCaught) {
  // The barriers, what is read of the gate and of the marks, and what is said when either is over.
  model::expect_every_order_matters({}, {forks({}), forks({.calls = 2})}, "fork_gate.h", 7);
}

}  // namespace
