// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The signs of queued work under the checker: something is queued while a searcher takes old signs down.
#include "sched/work_signs_protocol.h"

#include <memory>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using Sign = bosk::sched::WorkSign<A>;

constexpr std::uint64_t kChild = 1;       // the child's bit in its parent
constexpr std::uint64_t kGrandchild = 2;  // a bit of the child's own that a domain below it raises

struct Setting {
  bool up = true;      // old signs are up at the start
  bool below = false;  // something is queued below the child as well
  int searchers = 1;
  bool looks_again = true;   // planted when false
  bool stops_early = false;  // planted: the bit in the parent is left to others
  bool no_lock = false;      // planted: the queue's sign is taken down without the queue's lock
};

struct Machine {
  Sign parent;
  Sign child;
  A::atomic<bool> locked{false};  // the queue of the child
  A::plain<bool> announced{false};
  A::plain<int> length{0};

  void lock() {
    while (locked.load(relaxed) || locked.exchange(true, acquire)) A::pause();
  }
  void unlock() { locked.store(false, release); }
};

void raise(Machine& m, const Setting& s, std::uint64_t bit) {
  if (m.child.raise(bit) && !s.stops_early) m.parent.raise(kChild);
}

void enqueue(Machine& m, const Setting& s) {
  m.lock();
  m.length = m.length + 1;
  if (!m.announced) {
    m.announced = true;
    raise(m, s, Sign::kOwnQueue);
  }
  m.unlock();
}

void search(Machine& m, const Setting& s) {
  if ((m.parent.bits() & kChild) == 0) return;
  if ((m.child.bits() & Sign::kOwnQueue) != 0) {
    m.lock();
    const bool empty = m.length == 0;
    if (s.no_lock) m.unlock();
    if (empty && (s.no_lock || m.announced)) {
      if (!s.no_lock) m.announced = false;
      m.child.lower(Sign::kOwnQueue);
    }
    if (s.no_lock) {
      m.lock();
      m.announced = !empty;
    }
    m.unlock();
  }
  if (m.child.bits() != 0) return;
  m.parent.lower(kChild);
  if (s.looks_again && m.child.bits() != 0) m.parent.raise(kChild);
}

std::function<void()> signs(const Setting& s) {
  return [s] {
    auto m = std::make_shared<Machine>();
    if (s.up) {
      m->announced = true;
      m->child.raise(Sign::kOwnQueue);
      m->parent.raise(kChild);
    }
    model::spawn([=] { enqueue(*m, s); });
    if (s.below) model::spawn([=] { raise(*m, s, kGrandchild); });
    for (int i = 0; i < s.searchers; ++i) model::spawn([=] { search(*m, s); });
    model::at_end([=] {
      MODEL_ASSERT(m->length == 1);
      MODEL_ASSERT((m->child.bits() & Sign::kOwnQueue) != 0);
      MODEL_ASSERT(!s.below || (m->child.bits() & kGrandchild) != 0);
      MODEL_ASSERT((m->parent.bits() & kChild) != 0);
    });
  };
}

TEST(WorkSigns, WhatIsQueuedWhileOldSignsAreTakenDownIsSeen) {
  model::expect_proved({}, signs({}));
  model::expect_proved({}, signs({.up = false}));
}
TEST(WorkSigns, TwoSearchers) { model::expect_big_proved({}, signs({.searchers = 2})); }
TEST(WorkSigns, SomethingElseBelow) { model::expect_big_proved({}, signs({.below = true})); }

TEST(WorkSignsPlanted, NoSecondLook) {
  model::expect_failure({}, signs({.below = true, .looks_again = false}), "m->parent.bits()");
}
TEST(WorkSignsPlanted, NobodyTellsTheParent) {
  model::expect_failure({}, signs({.stops_early = true}), "m->parent.bits()");
}
TEST(WorkSignsPlanted, TheQueuesOwnSignWithoutItsLock) {
  model::expect_failure({}, signs({.no_lock = true}), "m->child.bits()");
}
TEST(WorkSignsPlanted, EveryWeakenedOrderIsCaught) {
  // raise's release, lower's acquire.
  model::expect_every_order_matters(
      {}, {signs({}), signs({.below = true}), signs({.searchers = 2})}, "work_signs_protocol.h", 2);
}

}  // namespace
