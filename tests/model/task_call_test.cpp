// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls to queued tasks under the checker: a task that needs another one to be run beside it finds a
// sleeping helper, though each call wakes one only.
#include "sched/task_call_protocol.h"

#include <array>
#include <memory>

#include "checker/expect.h"
#include "omp/task_queue_signals.h"
#include "sched/parking_protocol.h"

namespace {

using enum std::memory_order;
using namespace bosk::omp;
using A = model::ModelAtomics;

constexpr int kMostHelpers = 2;

struct Team {
  A::atomic<std::uint32_t> work;    // queued_work
  A::atomic<std::uint32_t> queued;  // tasks; any may take one
  A::atomic<std::uint32_t> begun;   // tasks that run
};

struct Helper {
  bosk::sched::ParkingSpot<A> spot;
  bosk::sched::CallWord<A, Team> call;
};

struct Setting {
  int helpers = 1;
  std::uint32_t tasks = 1;
  bool set_at_first = false;    // the flag, by those who have not found that there is nothing
  bool forgets_rest = false;    // planted: who takes a task does not care for the rest
  bool stranger = false;        // helper 0 is called by mistake, and cannot help
  bool stranger_keeps = false;  // planted: and does not call another in its place
  bool late = false;            // planted: a call that comes before the sleep is not looked at
};

struct State {
  Team team;
  std::array<Helper, kMostHelpers> helpers;
  bosk::sched::SleeperList<A> list;
};

void call(State& s, const Setting& setting, std::uint32_t from) {
  A::light_barrier();
  for (std::uint32_t i = from; i < static_cast<std::uint32_t>(setting.helpers); ++i) {
    if ((s.list.bits() >> i & 1) == 0) continue;
    Helper& h = s.helpers[i];
    if (!s.list.take(i) || !h.call.call(&s.team)) continue;
    if (h.spot.needs_wake()) h.spot.wake();
    return;
  }
}

void set_and_call(State& s, const Setting& setting) {
  s.team.work.store(1, seq_cst);
  call(s, setting, 0);
}

bool take(State& s) {
  std::uint32_t left = s.team.queued.load(relaxed);
  while (left != 0)
    if (s.team.queued.compare_exchange_strong(left, left - 1, relaxed, relaxed)) return true;
  return false;
}

/// As see_to_the_rest() in omp/task_queue.cpp.
void see_to_the_rest(State& s, const Setting& setting) {
  if (setting.forgets_rest) return;
  A::light_barrier();
  if (s.list.bits() == 0) return;
  if (s.team.queued.load(relaxed) != 0) {
    call(s, setting, 0);
    return;
  }
  clear_work_flag<A>(s.team.work);
  if (s.team.queued.load(relaxed) != 0) set_and_call(s, setting);
}

/// Runs one task, and would wait in it until all have begun.
void helper(State& s, const Setting& setting, std::uint32_t me) {
  Helper& h = s.helpers[me];
  const bool stranger = setting.stranger && me == 0;
  for (;;) {
    if (!stranger && s.team.work.load(relaxed) != 0) {
      bool found = take(s);
      if (!found) {
        clear_work_flag<A>(s.team.work);
        found = take(s);
        if (found) s.team.work.store(1, seq_cst);
        if (found) call(s, setting, 0);
      }
      if (found) {
        see_to_the_rest(s, setting);
        s.team.begun.fetch_add(1, release);
        return;
      }
    }
    h.call.open();
    s.list.add(me);
    h.spot.prepare();
    if ((!stranger && s.team.work.load(relaxed) != 0) || (!setting.late && h.call.is_called()))
      h.spot.cancel();
    else
      h.spot.sleep();
    Team* called = h.call.close();
    s.list.remove(me);
    if (stranger) {
      MODEL_ASSERT(called != nullptr);  // nobody else wakes it
      if (!setting.stranger_keeps && called->work.load(relaxed) != 0) call(s, setting, me + 1);
      return;
    }
  }
}

std::function<void()> tasks(const Setting& setting) {
  return [=] {
    auto s = std::make_shared<State>();
    if (setting.set_at_first) s->team.work.store(1, relaxed);
    model::spawn([=] {
      while (setting.stranger && (s->list.bits() & 1) == 0) A::pause();
      for (std::uint32_t i = 0; i < setting.tasks; ++i) {
        s->team.queued.fetch_add(1, release);
        if (must_set_work_flag<A>(s->team.work)) set_and_call(*s, setting);
      }
    });
    for (int i = 0; i < setting.helpers; ++i)
      model::spawn([=] { helper(*s, setting, static_cast<std::uint32_t>(i)); });
    model::at_end([=] { MODEL_ASSERT(s->team.begun.load(relaxed) == setting.tasks); });
  };
}

/// Three threads have too many executions for all of them.
void expect_no_failure_at_random(const std::function<void()>& body) {
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 1'000 : 100'000, .seed = 7}, body);
  EXPECT_FALSE(r.failed) << r.failure;
}

// A helper for which nobody cares sleeps for ever: the checker calls it a deadlock.
TEST(TaskCalls, OneTask) {
  model::expect_proved({}, tasks({}));
  model::expect_proved({}, tasks({.set_at_first = true}));
}
TEST(TaskCalls, AsManyHelpersAsTasks) {
  for (const bool set_at_first : {false, true})
    expect_no_failure_at_random(tasks({.helpers = 2, .tasks = 2, .set_at_first = set_at_first}));
}

TEST(TaskCalls, WhoCannotHelpCallsAnother) {
  expect_no_failure_at_random(tasks({.helpers = 2, .stranger = true}));
}

TEST(TaskCallsPlanted, WhoCannotHelpKeepsTheCall) {
  model::expect_failure({.random_walks = 100'000, .seed = 7},
                        tasks({.helpers = 2, .stranger = true, .stranger_keeps = true}),
                        "deadlock: asleep for ever in futex_wait");
}
TEST(TaskCallsPlanted, ACallBeforeTheSleepIsMissed) {
  model::expect_failure({}, tasks({.helpers = 2, .stranger = true, .late = true}),
                        "deadlock: asleep for ever in futex_wait");
}
TEST(TaskCallsPlanted, EveryWeakenedOrderIsCaught) {
  // The release of add() and the acquire of take(), of close() and of call().
  model::expect_every_order_matters(
      {.random_walks = 20'000, .seed = 7},
      {tasks({.helpers = 2, .tasks = 2}), tasks({.helpers = 2, .stranger = true})},
      "task_call_protocol.h", 4);
}
TEST(TaskCallsPlanted, TheRestIsForgotten) {
  model::expect_failure({.random_walks = 100'000, .seed = 7},
                        tasks({.helpers = 2, .tasks = 2, .forgets_rest = true}),
                        "deadlock: asleep for ever in futex_wait");
}

}  // namespace
