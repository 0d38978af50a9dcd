// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The preemption hand-over under the checker: a worker's role that is lent and taken back, a thread that
// is promoted to its donor's kernel thread and demoted. A role and a stack have one user at a time.
#include <memory>

#include "preemption_kernel.h"

namespace {

using namespace preemption_model;
using namespace bosk::sched;

// ---- lending a worker's role and taking it back -------------------------------------------------

struct RoleSetting {
  int natives = 1;
  int rounds = 2;
  bool borrows = false;         // another worker takes the carrier from the cache and runs it
  bool touches_late = false;    // planted: something of the worker's is written after lending
  bool commands_early = false;  // planted: the stand-in runs before the role is its own
  bool on_stack = false;        // planted: the role goes back before the stand-in left its stack
};

constexpr int kMostNatives = 2;
struct Town {
  Kernel native_kernel[kMostNatives], stand_in_kernel;
  Thread native[kMostNatives], stand_in;
  Worker worker[kMostNatives];
  A::atomic<Thread*> cache{nullptr};  // of carriers; taken by exchange
  A::atomic<int> over{0};
};

Thread* take_carrier(Town& t) {
  for (;;) {
    // acq_rel in both directions: stands for the cache's lock.
    if (Thread* carrier =
            t.cache.load(relaxed) != nullptr ? t.cache.exchange(nullptr, acq_rel) : nullptr)
      return carrier;
    A::pause();
  }
}

void no_timer(Kernel*) {}  // see Ticks

/// A worker that needs a carrier for itself, on its own kernel thread.
void borrower(Town& t) {
  Thread* carrier = take_carrier(t);
  MODEL_ASSERT(carrier->left == 1);
  carrier->left = 0;
  carrier->left = 1;
  t.cache.store(carrier, release);
}

void native_thread(Town& t, int index, const RoleSetting& s) {
  Thread& me = t.native[index];
  for (int round = 0; round < s.rounds; ++round) {
    // With a role, in a tick that found a system call.
    Worker& w = *me.worker.get();
    w.counts = w.counts + 1;
    Thread* stand_in = take_carrier(t);
    if (s.commands_early) run_there(*stand_in->own, stand_in->sp, 0);
    lend_to(w, me, *stand_in, 0, no_timer);
    if (s.touches_late) w.counts = w.counts + 1;
    // The system call is over: a runtime call (reacquire_role).
    w.ready.store(&me, release);
    me.own->command.take();
    MODEL_ASSERT(me.worker == &w && w.current == &me);
    MODEL_ASSERT(w.kernel.load(relaxed) == me.own);
  }
  if (t.over.fetch_add(1, acq_rel) + 1 < s.natives) return;
  t.stand_in_kernel.command.give(Kernel::kEnd);
}

/// The stand-in's kernel thread, as park_loop() and carrier_loop() have it.
void stand_in_kernel(Town& t, const RoleSetting& s) {
  Kernel& kernel = t.stand_in_kernel;
  const auto give_back = [&](Thread* carrier) {
    if (carrier != nullptr) t.cache.store(carrier, release);
  };
  while (kernel.command.take() != Kernel::kEnd) {
    MODEL_ASSERT(kernel.run_sp == t.stand_in.sp && kernel.run_thread_pointer == 1);
    Thread& me = t.stand_in;
    MODEL_ASSERT(me.left == 1);
    me.left = 0;
    Worker& w = *me.worker.get();
    MODEL_ASSERT(w.current == &me && w.kernel.load(relaxed) == &kernel);
    w.counts = w.counts + 1;
    Thread* native;
    while ((native = w.ready.load(acquire)) == nullptr) A::pause();
    w.ready.store(nullptr, relaxed);
    w.keeper = &me;
    native->worker = &w;
    w.current = native;
    take_role_back(w, *native, no_timer, no_timer);
    if (s.on_stack) give_role_back(*native, give_back);
    me.left = 1;  // the switch; from here on on the park stack
    if (!s.on_stack) give_role_back(*native, give_back);
  }
}

std::function<void()> roles(const RoleSetting& s) {
  return [s] {
    auto t = std::make_shared<Town>();
    t->stand_in.own = &t->stand_in_kernel;
    t->stand_in.sp = 5;
    t->cache.store(&t->stand_in, relaxed);
    for (int i = 0; i < s.natives; ++i) {
      Thread& native = t->native[i];
      Worker& w = t->worker[i];
      native.own = &t->native_kernel[i];
      native.worker = native.pinned = &w;
      w.current = &native;
      w.kernel.store(native.own, relaxed);
      model::spawn([=] { native_thread(*t, i, s); });
    }
    model::spawn([=] { stand_in_kernel(*t, s); });
    if (s.borrows) model::spawn([=] { borrower(*t); });
    model::at_end([=] {
      MODEL_ASSERT(t->over.load(relaxed) == s.natives);
      MODEL_ASSERT(t->stand_in.left == 1);
      for (int i = 0; i < s.natives; ++i) MODEL_ASSERT(t->worker[i].counts == 2 * s.rounds);
    });
  };
}

TEST(Roles, LentAndTakenBack) { model::expect_big_proved({}, roles({})); }
TEST(Roles, TheCarrierRunsElsewhereMeanwhile) {
  model::expect_big_proved({}, roles({.rounds = 1, .borrows = true}));
}
TEST(Roles, OneStandInForTwoWorkersAtRandom) {
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 5},
                     roles({.natives = 2, .rounds = 2}));
  EXPECT_FALSE(r.failed) << r.failure;
}

TEST(RolesPlanted, TheWorkerIsTouchedAfterLending) {
  model::expect_failure({}, roles({.rounds = 1, .touches_late = true}), "data race");
}
TEST(RolesPlanted, TheCommandComesBeforeTheRole) {
  model::expect_failure({}, roles({.rounds = 1, .commands_early = true}), "data race");
}
TEST(RolesPlanted, BackBeforeTheStackWasLeft) {
  model::expect_failure({}, roles({.rounds = 1, .borrows = true, .on_stack = true}), "data race");
}

// ---- promotion to the donor's kernel thread, and demotion ----------------------------------------

struct PromotionSetting {
  int workers = 2;
  bool runs_early = false;       // planted: the donor is told before the worker left the stack
  bool published_early = false;  // planted: demoted before its kernel thread left the stack
};

struct Promoted {
  Kernel donor;
  A::plain<int> left{1};     // the thread's stack: 1 while nobody stands on it
  A::atomic<int> ready{1};   // on a ready queue
  A::atomic<int> rounds{0};  // times that it was demoted
};
constexpr int kPromotions = 2;

void step_onto(Promoted& p) {
  MODEL_ASSERT(p.left == 1);
  p.left = 0;
}

/// A worker that finds the thread ready, and in the first tick a system call.
void promotes(Promoted& p, const PromotionSetting& s) {
  while (p.rounds.load(relaxed) != kPromotions) {
    if (p.ready.load(relaxed) == 0 || p.ready.exchange(0, acq_rel) == 0) {
      A::pause();
      continue;
    }
    step_onto(p);
    if (s.runs_early) run_there(p.donor, 7, 0);
    p.left = 1;  // the switch; then the post action
    if (!s.runs_early) run_there(p.donor, 7, 0);
  }
}

void donor(Promoted& p, const PromotionSetting& s) {
  for (int round = 1; round <= kPromotions; ++round) {
    MODEL_ASSERT(p.donor.command.take() == Kernel::kRun && p.donor.run_sp == 7);
    step_onto(p);
    const auto publish = [&] {
      if (round == kPromotions) return p.rounds.store(round, relaxed);
      p.ready.store(1, release);
    };
    if (s.published_early) publish();
    p.left = 1;  // back on the park stack
    if (!s.published_early) publish();
  }
}

std::function<void()> promotions(const PromotionSetting& s) {
  return [s] {
    auto p = std::make_shared<Promoted>();
    for (int i = 0; i < s.workers; ++i) model::spawn([=] { promotes(*p, s); });
    model::spawn([=] { donor(*p, s); });
    model::at_end([=] { MODEL_ASSERT(p->left == 1); });
  };
}

TEST(Promotion, ByOneWorkerOrAnother) {
  model::expect_proved({}, promotions({.workers = 1}));
  model::expect_big_proved({}, promotions({}));
}
TEST(PromotionPlanted, ToldBeforeTheStackWasLeft) {
  model::expect_failure({}, promotions({.runs_early = true}), "data race");
}
TEST(PromotionPlanted, PublishedBeforeTheStackWasLeft) {
  model::expect_failure({}, promotions({.published_early = true}), "data race");
}

}  // namespace
