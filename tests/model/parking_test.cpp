// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parking and waking under the checker: no wake-up is lost, whatever is weakened is noticed.
#include "sched/parking_protocol.h"

#include <memory>
#include <string>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using Spot = bosk::sched::ParkingSpot<A>;

constexpr int kMostWakers = 3;

/// The owner waits for one piece of work from each waker.
struct Office {
  Spot spot;
  A::atomic<int> work[kMostWakers];
  A::plain<int> letter[kMostWakers];
};

struct Setting {
  int wakers = 1;
  bool look_again = true;   // planted when false: sleeps without a second look
  bool wake_first = false;  // planted: looks for a sleeper before it has published
  bool announce = true;     // planted when false: sleeps without saying so before
  const timespec* timeout = nullptr;
};

int take_work(Office& office, int wakers) {
  int taken = 0;
  for (int i = 0; i < wakers; ++i) {
    if (office.work[i].load(acquire) == 0) continue;
    MODEL_ASSERT(office.letter[i] == i + 1);
    office.work[i].store(0, relaxed);
    ++taken;
  }
  return taken;
}

bool has_work(Office& office, int wakers) {
  for (int i = 0; i < wakers; ++i)
    if (office.work[i].load(relaxed) != 0) return true;
  return false;
}

void owner(Office& office, const Setting& s) {
  int missing = s.wakers - take_work(office, s.wakers);
  while (missing > 0) {
    if (s.announce) office.spot.prepare();
    if (s.look_again && has_work(office, s.wakers)) {
      office.spot.cancel();
    } else {
      if (!s.announce) office.spot.prepare();
      office.spot.sleep(s.timeout);
    }
    missing -= take_work(office, s.wakers);
  }
}

void waker(Office& office, const Setting& s, int me) {
  office.letter[me] = me + 1;
  if (s.wake_first && office.spot.needs_wake()) office.spot.wake();
  office.work[me].store(1, release);
  if (!s.wake_first && office.spot.needs_wake()) office.spot.wake();
}

std::function<void()> office(const Setting& setting) {
  return [setting] {
    auto office = std::make_shared<Office>();
    for (int i = 0; i < setting.wakers; ++i)
      model::name(office->work[i], "work" + std::to_string(i));
    model::spawn([=] { owner(*office, setting); });
    for (int i = 0; i < setting.wakers; ++i) model::spawn([=] { waker(*office, setting, i); });
  };
}

TEST(Parking, OneWaker) {
  model::expect_proved({}, office({}));
  model::expect_proved({.spurious_wakes = 2}, office({}));
}
TEST(Parking, TwoWakers) {
  model::expect_big_proved({}, office({.wakers = 2}));
  model::expect_big_proved({.spurious_wakes = 1}, office({.wakers = 2}));
}
TEST(Parking, ThreeWakersAtRandom) {
  const model::Result r = model::explore(
      {.spurious_wakes = 1, .random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 3},
      office({.wakers = 3}));
  EXPECT_FALSE(r.failed) << r.failure;
}
TEST(Parking, TimeLimit) {
  const timespec limit{0, 1};
  model::expect_proved({.timeouts = 3}, office({.timeout = &limit}));
  model::expect_big_proved({.timeouts = 1}, office({.wakers = 2, .timeout = &limit}));
}
TEST(Parking, TimeLimitIsNotNeeded) {
  const timespec limit{0, 1};  // it never runs out here: a lost wake-up would be a deadlock
  model::expect_big_proved({}, office({.wakers = 2, .timeout = &limit}));
}

/// What the waker did is visible after sleep() alone, without a look at any other atomic.
std::function<void()> letter_only(bool heed_answer) {
  return [=] {
    struct State {
      Spot spot;
      A::plain<int> letter;
      A::atomic<int> prepared;
    };
    auto s = std::make_shared<State>();
    model::spawn([=] {
      const timespec limit{0, 1};
      s->spot.prepare();
      s->prepared.store(1, release);
      if (s->spot.sleep(&limit) || !heed_answer) MODEL_ASSERT(s->letter == 5);
    });
    model::spawn([=] {
      while (s->prepared.load(acquire) == 0) A::pause();
      s->letter = 5;
      s->spot.wake();
    });
  };
}
TEST(Parking, SleepShowsWhatTheWakerDid) {
  model::expect_proved({}, letter_only(true));
  model::expect_proved({.timeouts = 1}, letter_only(true));
  model::expect_failure({.timeouts = 1}, letter_only(false), "data race");
}

// ---- planted bugs -------------------------------------------------------------------------------

void expect_lost_wake_up(const Setting& setting) {
  model::expect_failure({}, office(setting), "deadlock: asleep for ever in futex_wait");
}
TEST(ParkingPlanted, NoSecondLook) { expect_lost_wake_up({.look_again = false}); }
TEST(ParkingPlanted, LooksForTheSleeperTooEarly) { expect_lost_wake_up({.wake_first = true}); }
TEST(ParkingPlanted, AnnouncesAfterTheSecondLook) { expect_lost_wake_up({.announce = false}); }

TEST(ParkingPlanted, EveryWeakenedOrderIsCaught) {
  // The heavy and the light barrier, the release of wake(), and sleep()'s two acquires.
  model::expect_every_order_matters({.timeouts = 1}, {letter_only(true), office({.wakers = 2})},
                                    "parking_protocol.h", 5);
}

}  // namespace
