// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The work-stealing deque under the checker: every item leaves once, with what its pusher wrote.
#include "sched/task_deque.h"

#include <array>
#include <memory>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;

constexpr int kMost = 4;

struct Item {
  A::plain<int> value{0};
  A::plain<int> taken{0};  // an item that two threads take is a data race, or a 2
};

using Deque = bosk::sched::TaskDeque<A, Item>;

struct Setting {
  int items = 2;
  int pops_between = 0;  // after each push
  int pops_at_end = 2;
  int thieves = 1;
  int steals = 1;      // of each
  int capacity = 4;    // of the first ring
  bool looks = false;  // thieves look into an item before they take it
};

struct State {
  std::array<Item, kMost> items;
  Item before;
  Deque deque;
};

void take(Item* item) {
  if (item == nullptr) return;
  MODEL_ASSERT(item->value != 0);
  item->taken = item->taken + 1;
}

bool any(Item*) { return true; }
bool has_value(Item* item) { return item->value != 0; }

void owner(State& s, const Setting& setting) {
  for (int i = 0; i < setting.items; ++i) {
    s.items[i].value = i + 1;
    s.deque.push(&s.items[i], setting.capacity);
    for (int k = 0; k < setting.pops_between; ++k) take(s.deque.pop());
  }
  for (int k = 0; k < setting.pops_at_end; ++k) take(s.deque.pop());
}

std::function<void()> deque(const Setting& setting) {
  return [setting] {
    auto s = std::make_shared<State>();
    // With a ring from the start, also where an order was weakened a thief finds one.
    s->deque.push(&s->before, setting.capacity);
    s->deque.pop();
    model::spawn([=] { owner(*s, setting); });
    for (int i = 0; i < setting.thieves; ++i)
      model::spawn([=] {
        for (int k = 0; k < setting.steals; ++k)
          take(s->deque.steal_if(setting.looks ? has_value : any));
      });
    model::at_end([=] {
      while (Item* item = s->deque.pop()) take(item);
      for (int i = 0; i < setting.items; ++i) MODEL_ASSERT(s->items[i].taken == 1);
    });
  };
}

TEST(Deque, OwnerAndThiefMeetAtTheLastItem) {
  model::expect_proved({}, deque({.items = 1, .pops_at_end = 1}));
  model::expect_proved({}, deque({.items = 2, .pops_at_end = 2}));
}
TEST(Deque, ThiefThatStealsTwice) {
  model::expect_big_proved({}, deque({.items = 2, .pops_at_end = 2, .steals = 2}));
}
TEST(Deque, PopsBetweenPushes) {
  model::expect_big_proved({}, deque({.items = 2, .pops_between = 1, .pops_at_end = 1}));
  model::expect_big_proved({.preemption_bound = -1},
                           deque({.items = 2, .pops_between = 2, .pops_at_end = 0, .steals = 2}));
}
TEST(Deque, TheRingGrowsUnderAThief) {
  model::expect_big_proved({}, deque({.items = 2, .pops_at_end = 1, .steals = 2, .capacity = 1}));
}
TEST(Deque, TheRingIsReused) {
  // Slots are written again after their items were stolen: capacity 2, three items.
  model::expect_big_proved({}, deque({.items = 3, .pops_at_end = 0, .steals = 2, .capacity = 2}));
}
TEST(Deque, TwoThieves) {
  model::expect_big_proved({}, deque({.items = 2, .pops_at_end = 1, .thieves = 2}));
  model::expect_big_proved({}, deque({.items = 2, .pops_at_end = 2, .thieves = 2, .looks = true}));
}
TEST(Deque, ThievesMayLookIntoItems) {
  model::expect_big_proved({}, deque({.items = 2, .pops_between = 1, .steals = 2, .looks = true}));
  model::expect_big_proved({}, deque({.items = 2, .steals = 2, .capacity = 1, .looks = true}));
}
TEST(Deque, MoreAtRandom) {
  const model::Result r = model::explore(
      {.random_walks = model::kSlowBuild ? 500 : 20'000, .seed = 3}, deque({.items = 4,
                                                                            .pops_between = 1,
                                                                            .pops_at_end = 3,
                                                                            .thieves = 2,
                                                                            .steals = 3,
                                                                            .capacity = 1}));
  EXPECT_FALSE(r.failed) << r.failure;
}

// ---- planted bugs -------------------------------------------------------------------------------

TEST(DequePlanted, EveryWeakenedOrderIsCaught) {
  if (model::kSlowBuild) GTEST_SKIP() << "mutation runs in optimised builds only";
  const std::vector<model::Mutant> mutants = model::mutate(
      {},
      {deque({.items = 2, .pops_at_end = 2}), deque({.items = 2, .pops_at_end = 2, .steals = 2}),
       deque({.items = 2, .pops_at_end = 1, .steals = 2, .capacity = 1}),
       deque({.items = 2, .pops_between = 1, .steals = 2, .looks = true}),
       deque({.items = 2, .pops_at_end = 1, .thieves = 2})},
      "task_deque.h");
  EXPECT_EQ(mutants.size(), 14u);
  for (const model::Mutant& m : mutants) {
    std::cout << m << "\n";
    // These two keep a thief's load before the owner's later store of the same slot. The checker runs
    // loads in program order, so it cannot see them missing.
    const bool load_buffering =
        m.text.find("known_top_ = top_.load") != std::string::npos ||
        m.text.find("t + 1, std::memory_order_release") != std::string::npos;
    EXPECT_TRUE(m.caught || load_buffering) << m;
  }
}

}  // namespace
