// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timers of preemption under the checker: no tick is lost that somebody relies on, also while a
// worker's role moves to another kernel thread.
#include <memory>

#include "preemption_kernel.h"

namespace {

using namespace preemption_model;
using namespace bosk::sched;

struct TickSetting {
  int publishers = 1;
  bool runs = false;            // the timer, at first
  bool moves = false;           // the role, to another kernel thread
  bool flag_first = false;      // planted: the flag falls before the timer stops
  bool look_again = true;       // planted when false
  bool looks_up_early = false;  // planted: the publisher looks up the player before it has queued
  bool arms_player = true;      // planted when false: the new player's timer is left as it was
};

struct Desk {
  A::atomic<int> queued{0};  // RunQueue::best: relaxed
  Kernel first, second;
  A::atomic<Kernel*> player{nullptr};
  bosk::base::CommandWord<A> word;
};

void publish(Desk& d, const TickSetting& s) {
  Kernel* kernel = nullptr;
  if (s.looks_up_early) {
    kernel = d.player.load(acquire);
    d.queued.fetch_add(1, relaxed);
    A::fence(seq_cst);
    if (kernel->timer_armed.load(relaxed) != 0) kernel = nullptr;
  } else {
    d.queued.fetch_add(1, relaxed);
    kernel = kernel_to_arm<A>(d.player);
  }
  if (kernel != nullptr) arm(kernel);
}

/// The worker runs code that never calls the library: it finds what is queued in ticks only. A tick
/// may come after the timer was stopped (the signal was pending).
void work_by_ticks(Desk& d, Kernel* me, const TickSetting& s) {
  for (int missing = s.publishers; missing > 0;) {
    if (me->running.load(relaxed) == 0) {
      A::pause();
    } else if (d.queued.load(relaxed) != 0) {
      missing -= d.queued.exchange(0, relaxed);
    } else if (s.flag_first) {
      disarm_ticks(me->timer_armed, [] {});
      stop(me);
      A::fence(seq_cst);
      if (d.queued.load(relaxed) != 0) arm(me);
    } else if (disarm_ticks_unless<A>(
                   me->timer_armed, [=] { stop(me); },
                   [&] { return s.look_again && d.queued.load(relaxed) != 0; })) {
      arm(me);
    }
  }
}

std::function<void()> ticks(const TickSetting& s) {
  return [s] {
    auto d = std::make_shared<Desk>();
    d->player.store(&d->first, relaxed);
    if (s.runs) arm(&d->first);
    if (s.moves) {
      model::spawn([=] {
        struct Mover {
          Kernel* own;
        } native{&d->second};
        struct Role {
          A::atomic<Kernel*>& kernel;
        } role{d->player};
        take_role_back(role, native, disarm, [&](Kernel* kernel) {
          if (s.arms_player) arm(kernel);
        });
        d->word.give(1);
      });
      model::spawn([=] {
        d->word.take();
        work_by_ticks(*d, &d->second, s);
      });
    } else {
      model::spawn([=] { work_by_ticks(*d, &d->first, s); });
    }
    for (int i = 0; i < s.publishers; ++i) model::spawn([=] { publish(*d, s); });
  };
}

TEST(Ticks, OnePublisher) {
  model::expect_proved({}, ticks({}));
  model::expect_proved({}, ticks({.runs = true}));
}
TEST(Ticks, TwoPublishers) { model::expect_big_proved({}, ticks({.publishers = 2})); }
TEST(Ticks, TwoPublishersTimerRuns) {
  model::expect_big_proved({}, ticks({.publishers = 2, .runs = true}));
}
TEST(Ticks, TheRoleMovesMeanwhile) {
  model::expect_big_proved({}, ticks({.moves = true}));
  model::expect_big_proved({}, ticks({.runs = true, .moves = true}));
}

/// A publisher that meets a stand-in which has just been made.
std::function<void()> fresh_stand_in() {
  return [] {
    struct Town {
      Worker worker;
      Thread native, stand_in;
      Kernel native_kernel, stand_in_kernel;
    };
    auto t = std::make_shared<Town>();
    model::spawn([=] {
      t->stand_in_kernel.tid = 0;
      t->stand_in_kernel.tid = 1;
      t->stand_in.own = &t->stand_in_kernel;
      t->worker.kernel.store(&t->native_kernel, relaxed);
      lend_to(t->worker, t->native, t->stand_in, 0, [](Kernel*) {});
    });
    model::spawn([=] {
      Kernel* kernel =
          t->worker.kernel.load(relaxed) != nullptr ? kernel_to_arm<A>(t->worker.kernel) : nullptr;
      if (kernel != nullptr) arm(kernel);
    });
  };
}
TEST(Ticks, StandInThatWasJustMade) { model::expect_proved({}, fresh_stand_in()); }

constexpr const char* kLostTick = "no thread can go on";
TEST(TicksPlanted, FlagFallsBeforeTheTimerStops) {
  model::expect_failure({}, ticks({.runs = true, .flag_first = true}), kLostTick);
}
TEST(TicksPlanted, NoSecondLook) {
  model::expect_failure({}, ticks({.runs = true, .look_again = false}), kLostTick);
}
TEST(TicksPlanted, PlayerLookedUpBeforeTheFence) {
  model::expect_failure({}, ticks({.moves = true, .looks_up_early = true}), kLostTick);
}
TEST(TicksPlanted, NewPlayersTimerLeftAsItWas) {
  model::expect_failure({}, ticks({.runs = true, .moves = true, .arms_player = false}), kLostTick);
}

TEST(TicksPlanted, EveryWeakenedOrderIsCaught) {
  // The flag's exchange and store, the two fences twice each, the player's load, and its store by
  // lend_to().
  model::expect_every_order_matters(
      {}, {ticks({}), ticks({.runs = true}), ticks({.moves = true}), fresh_stand_in()},
      "preemption_protocol.h", 8);
}

}  // namespace
