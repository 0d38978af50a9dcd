// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The join of a bubble under the checker, with an opener that suspends: it is made ready once, by
// whoever ends last, and not before its worker has left its stack.
//
// As in sched/bubble_queue.cpp: the opener keeps its own unit of the count while it stands on its
// stack; its worker takes that unit away in the post action of the switch (opener_left), and says so.
// So a count of zero with the suspended bit means that the opener waits and may be run by whoever saw
// that; and a member that has work for it may take the bit away and run it before.
#include <functional>
#include <memory>

#include "checker/expect.h"
#include "sched/claim_protocol.h"
#include "sched/join_protocol.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;

constexpr int kTeams = 2;

struct Setting {
  int helpers = 2;
  int looks = 1;                // of the opener before it suspends
  bool pulls = false;           // a helper with a member makes the opener do something meanwhile
  bool own_unit_first = false;  // planted: the opener gives its unit away before it left its stack
  bool no_look_back = false;    // planted: it suspends itself without looking for work once more
  bool wakes_always = false;  // planted: the opener's worker makes it ready whatever the count says
};

struct Bubble {
  bosk::sched::ClaimWord<A> ghosts;
  bosk::sched::JoinCount<A> pending;
  A::plain<int> team;
  A::plain<int> result[kTeams][4];
  A::plain<int> opener_stack;  // what the switch saves; whoever runs the opener uses it
  A::plain<int> teams_joined;  // the opener's progress, on its stack
  A::atomic<int> work;         // queued for the opener
  A::plain<int> work_done;     // by the opener
  A::atomic<int> over;
};

/// The opener goes on, on the worker that made it ready: it reads what the members did, closes the
/// team and opens the next one.
void run_opener(Bubble& b, const Setting& s);

void take_stack(Bubble& b) {
  MODEL_ASSERT(b.opener_stack == 1);
  b.opener_stack = 0;
}

void finish(Bubble& b, const Setting& s, uint32_t batch) {
  if (!b.pending.finish(batch)) return;
  take_stack(b);
  run_opener(b, s);
}

void join(Bubble& b, const Setting& s, uint32_t own);

/// The opener was made ready before the end: it does what was queued, and waits again.
void run_pulled(Bubble& b, const Setting& s) {
  take_stack(b);
  if (b.work.load(relaxed) != 0 && b.work.exchange(0, acquire) != 0) b.work_done = b.work_done + 1;
  join(b, s, 0);
}

void join(Bubble& b, const Setting& s, uint32_t own) {
  for (int look = 0; look < s.looks; ++look)
    if (b.pending.try_last(own)) return run_opener(b, s);
  if (s.own_unit_first) {
    const bool last = b.pending.suspend(own);
    b.opener_stack = 1;
    if (last) run_opener(b, s);
    return;
  }
  b.opener_stack = 1;  // the switch
  // The post action: on the opener's worker, on the next thread's stack.
  if (b.pending.suspend(own) || s.wakes_always) {
    take_stack(b);
    return run_opener(b, s);
  }
  if (s.no_look_back) return;
  if (b.work.load(seq_cst) != 0 && b.pending.pull()) run_pulled(b, s);
}

void open_team(Bubble& b, const Setting& s, int team) {
  b.team = team;
  const auto size = static_cast<uint32_t>(s.helpers + 1);
  b.pending.open(size);
  b.ghosts.open(size, 1);
  b.result[team][0] = 1;
  join(b, s, 1);
}

void run_opener(Bubble& b, const Setting& s) {
  const int team = b.team;
  for (int i = 0; i <= s.helpers; ++i) MODEL_ASSERT(b.result[team][i] == 1);
  b.teams_joined = b.teams_joined + 1;
  if (team + 1 < kTeams)
    open_team(b, s, team + 1);
  else
    b.over.store(1, release);
}

void helper(Bubble& b, const Setting& s) {
  for (;;) {
    if (const bosk::sched::Claim claim = b.ghosts.claim(1)) {
      const int team = b.team;
      b.result[team][claim.index] = 1;
      if (s.pulls) {
        b.work.store(1, seq_cst);
        if (b.pending.pull()) run_pulled(b, s);
        // The member waits for the work, as for a child task.
        while (b.work.load(acquire) != 0) A::pause();
      }
      finish(b, s, 1);
      continue;
    }
    if (b.over.load(acquire) != 0) return;
    A::pause();
  }
}

std::function<void()> joins(const Setting& s) {
  return [s] {
    auto b = std::make_shared<Bubble>();
    model::spawn([=] { open_team(*b, s, 0); });
    for (int i = 0; i < s.helpers; ++i) model::spawn([=] { helper(*b, s); });
    model::at_end([=] { MODEL_ASSERT(b->teams_joined == kTeams); });
  };
}

TEST(Join, OneHelper) {
  model::expect_proved({}, joins({.helpers = 1}));
  model::expect_proved({}, joins({.helpers = 1, .looks = 0}));
}
TEST(Join, TwoHelpersAtRandom) {
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 4}, joins({}));
  EXPECT_FALSE(r.failed) << r.failure;
}

TEST(Join, AMemberHasWorkForTheOpener) {
  model::expect_proved({}, joins({.helpers = 1, .looks = 0, .pulls = true}));
}
TEST(Join, TwoMembersHaveWorkForTheOpener) {
  const model::Result r = model::explore(
      {.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 5}, joins({.pulls = true}));
  EXPECT_FALSE(r.failed) << r.failure;
}

TEST(JoinPlanted, NobodyLooksForWorkAfterTheOpenerWasSuspended) {
  model::expect_failure({}, joins({.helpers = 1, .looks = 0, .pulls = true, .no_look_back = true}),
                        "no thread can go on");
}
TEST(JoinPlanted, OwnUnitGivenAwayBeforeTheStackWasLeft) {
  model::expect_failure({}, joins({.helpers = 1, .own_unit_first = true}), "data race");
}
TEST(JoinPlanted, OpenerRunsWhateverTheCountSays) {
  model::expect_failure({}, joins({.helpers = 1, .wakes_always = true}),
                        "assertion failed: b.result[team][i] == 1");
}

TEST(JoinPlanted, EveryWeakenedOrderIsCaught) {
  model::expect_every_order_matters(
      {},
      {joins({.helpers = 1}), joins({.helpers = 1, .looks = 0}),
       joins({.helpers = 1, .looks = 0, .pulls = true}), joins({.helpers = 1, .pulls = true})},
      "join_protocol.h", 9);
}

}  // namespace
