// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regeneration under the checker: a bubble is closed while its members stop, block and wake, and while
// thieves take its ghosts; whoever completes it opens it again.
#include "sched/regeneration_protocol.h"

#include <memory>
#include <string>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using bosk::sched::BubbleState;
using bosk::sched::Claim;
using bosk::sched::Whereabouts;

enum class Does { kNothing, kStops, kBlocks, kBlocksForTheOther };

struct Setting {
  Does first = Does::kNothing;  // what the members do; who does nothing waits on the queue
  Does second = Does::kStops;
  int closers = 1;
  int ghosts = 0;
  int thieves = 0;
  bool opens_late = false;      // the team's opener writes its fields while the thieves are there
  bool freeze = true;           // planted when false: the word stays with the thieves
  bool give_back = true;        // planted when false: held ghosts are forgotten
  bool awaits_blocked = false;  // planted
  bool early_look = false;      // planted: is it blocked? asked before the bubble's lock
  bool counts = true;           // planted when false: running members are not waited for
};

class Lock {
 public:
  void lock() {
    while (held_.load(relaxed) || held_.exchange(true, acquire)) A::pause();
  }
  void unlock() { held_.store(false, release); }

 private:
  A::atomic<bool> held_{false};
};

struct Member {
  A::plain<Whereabouts> where{Whereabouts::kOut};  // the lock's
  A::plain<bool> queued{false};                    // the lock's
  A::atomic<bool> blocked{false};
  A::atomic<bool> ran{false};  // after it was let out again
};

/// One bubble. Its lock stands for the queue's as well: bubble_tree holds both whenever it changes both.
struct Tree {
  Lock lock;
  bosk::sched::Regeneration<A> bubble;
  bosk::sched::ClaimWord<A> ghosts;
  A::plain<int> team{0};
  Member member[2];
  A::plain<int> homecomings{0};  // the lock's
  A::plain<int> ghost_ran[3]{A::plain<int>{0}, A::plain<int>{0}, A::plain<int>{0}};
};

void run_ghosts(Tree& t, const Claim& claim) {
  MODEL_ASSERT(t.team == 1);
  for (std::uint32_t i = claim.index; i < claim.index + claim.count; ++i)
    t.ghost_ran[i] = t.ghost_ran[i] + 1;
}

/// By who completed the bubble: it is nobody else's. It is put on the queue, found and opened again.
void go_home(Tree& t, const Setting& s) {
  t.lock.lock();
  t.homecomings = t.homecomings + 1;
  MODEL_ASSERT(t.bubble.state == BubbleState::kClosed);
  MODEL_ASSERT(t.bubble.awaited == 0);
  for (Member& m : t.member) {
    MODEL_ASSERT(!m.queued);
    MODEL_ASSERT(m.where == Whereabouts::kHeld || m.blocked.load(relaxed));
  }
  MODEL_ASSERT(t.ghosts.left() == 0);
  MODEL_ASSERT(t.bubble.take_in_hand());
  if (s.give_back)
    t.bubble.open(&t.ghosts);
  else
    t.bubble.state = BubbleState::kBurst;
  for (Member& m : t.member)
    if (m.where == Whereabouts::kHeld) {
      m.where = Whereabouts::kOut;
      m.queued = true;
      m.ran.store(true, release);
    }
  t.lock.unlock();
}

bool take_back(Tree& t, const Setting& s, Member& m) {
  const bool early = s.early_look && m.blocked.load(relaxed);
  t.lock.lock();
  bool queued = false;
  if (m.where == Whereabouts::kOut) {
    queued = m.queued;
    m.queued = false;
    const bool blocked = s.early_look ? early : m.blocked.load(relaxed);
    if (queued)
      t.bubble.hold(m.where);
    else if ((!blocked || s.awaits_blocked) && s.counts)
      t.bubble.await(m.where);
  }
  t.lock.unlock();
  return queued;
}

void closer(Tree& t, const Setting& s) {
  t.lock.lock();
  const bool mine = t.bubble.begin_closing(s.freeze ? &t.ghosts : nullptr);
  t.lock.unlock();
  if (!mine) return;
  for (Member& m : t.member) take_back(t, s, m);
  t.lock.lock();
  const bool closed = t.bubble.end_closing();
  t.lock.unlock();
  if (closed) go_home(t, s);
}

/// The member stops running: on the queue, or back in the bubble.
void stop(Tree& t, const Setting& s, Member& m) {
  m.blocked.store(false, relaxed);
  t.lock.lock();
  bool closed = false;
  if (t.bubble.state == BubbleState::kBurst) {
    m.where = Whereabouts::kOut;
    m.queued = true;
  } else {
    closed = t.bubble.hold(m.where);
  }
  t.lock.unlock();
  if (closed) go_home(t, s);
}

void block(Tree& t, const Setting& s, Member& m) {
  m.blocked.store(true, relaxed);
  t.lock.lock();
  const bool closed = m.where == Whereabouts::kAwaited && t.bubble.let_go(m.where);
  t.lock.unlock();
  if (closed) go_home(t, s);
}

void run_member(Tree& t, const Setting& s, Member& m, const Member& other, Does does) {
  if (does == Does::kStops) return stop(t, s, m);
  block(t, s, m);
  if (does != Does::kBlocksForTheOther) return;
  while (!other.ran.load(acquire)) A::pause();
  stop(t, s, m);
}

void thief(Tree& t) {
  if (const Claim claim = t.ghosts.claim(1)) run_ghosts(t, claim);
}

std::function<void()> regeneration(const Setting& s) {
  return [s] {
    auto t = std::make_shared<Tree>();
    t->bubble.state = BubbleState::kBurst;
    const Does does[] = {s.first, s.second};
    const auto open_team = [=] {
      t->team = 1;
      if (s.ghosts != 0) t->ghosts.open(static_cast<std::uint32_t>(s.ghosts), 0);
    };
    if (!s.opens_late) open_team();
    for (int i = 0; i < 2; ++i) {
      Member& me = t->member[i];
      const Member& other = t->member[1 - i];
      if (does[i] == Does::kNothing)
        me.queued = true;
      else
        model::spawn([=, &me, &other] { run_member(*t, s, me, other, does[i]); });
    }
    for (int i = 0; i < s.closers; ++i)
      model::spawn([=] {
        if (s.opens_late) open_team();
        closer(*t, s);
      });
    for (int i = 0; i < s.thieves; ++i) model::spawn([=] { thief(*t); });
    model::at_end([=] {
      MODEL_ASSERT(t->bubble.state == BubbleState::kBurst);
      MODEL_ASSERT(t->homecomings >= 1 && t->homecomings <= s.closers);
      while (const Claim claim = t->ghosts.claim(1)) run_ghosts(*t, claim);
      for (int i = 0; i < s.ghosts; ++i) MODEL_ASSERT(t->ghost_ran[i] == 1);
    });
  };
}

// ---- as it is

/// For models of three threads that take locks all the time: too many executions to explore all.
void expect_right_at_random(const Setting& s) {
  const model::Result r = model::explore(
      {.random_walks = model::kSlowBuild ? 500 : 40'000, .seed = 11}, regeneration(s));
  EXPECT_FALSE(r.failed) << r.failure;
}

TEST(Regeneration, ALastRunningMemberClosesIt) { model::expect_proved({}, regeneration({})); }
TEST(Regeneration, TwoRunningMembers) { expect_right_at_random({.first = Does::kStops}); }
TEST(Regeneration, AMemberThatBlocksMeanwhile) {
  model::expect_proved({}, regeneration({.second = Does::kBlocks}));
  expect_right_at_random({.first = Does::kBlocks, .second = Does::kStops});
}
TEST(Regeneration, AMemberThatBlocksForOneThatTheBubbleHolds) {
  model::expect_big_proved({}, regeneration({.second = Does::kBlocksForTheOther}));
}
TEST(Regeneration, TwoCloseItAtOnce) { expect_right_at_random({.closers = 2}); }
TEST(Regeneration, ThievesTakeGhostsMeanwhile) {
  model::expect_big_proved({}, regeneration({.ghosts = 2, .thieves = 1}));
  const model::Result r =
      model::explore({.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 5},
                     regeneration({.ghosts = 3, .thieves = 2}));
  EXPECT_FALSE(r.failed) << r.failure;
}

// ---- planted bugs

void expect_caught(const Setting& s, const std::string& text) {
  model::expect_failure({}, regeneration(s), text);
}
TEST(RegenerationPlanted, GhostsStayWithTheThieves) {
  expect_caught({.ghosts = 2, .thieves = 1, .freeze = false}, "t.ghosts.left() == 0");
}
TEST(RegenerationPlanted, HeldGhostsAreForgotten) {
  expect_caught({.ghosts = 2, .thieves = 1, .give_back = false}, "t->ghost_ran[i] == 1");
}
TEST(RegenerationPlanted, RunningMembersAreNotAwaited) {
  expect_caught({.counts = false}, "Whereabouts::kHeld");
}
TEST(RegenerationPlanted, BlockedMembersAreAwaited) {
  expect_caught({.second = Does::kBlocksForTheOther, .awaits_blocked = true},
                "no thread can go on");
}
TEST(RegenerationPlanted, WhetherItIsBlockedIsAskedTooEarly) {
  expect_caught({.second = Does::kBlocksForTheOther, .early_look = true}, "no thread can go on");
}
TEST(RegenerationPlanted, EveryWeakenedOrderIsCaught) {
  // claim's acquire, open's release, give_back's release.
  model::expect_every_order_matters(
      {}, {regeneration({.ghosts = 2, .thieves = 1, .opens_late = true})}, "claim_protocol.h", 3);
}

}  // namespace
