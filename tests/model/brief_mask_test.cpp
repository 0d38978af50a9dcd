// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A worker that goes to another CPU beside a program that binds it, and somebody who wants to know whether it is bound.
#include "sched/brief_mask.h"

#include <memory>

#include "checker/expect.h"

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using Bound = bosk::sched::Bound;

constexpr uint32_t kOwn = 0;  // as a digest
constexpr uint32_t kTarget = 3;
constexpr uint32_t kOther = 5;
constexpr uint32_t kPrograms = 7;

struct Setting {
  int moves = 1;
  bool is_bound = false;      // the program has done it before
  bool gets_bound = false;    // the program does it meanwhile
  bool tells_nobody = false;  // planted: the worker does not say what it gives itself
  bool restores_all =
      false;  // planted: the worker gives itself its own mask, whatever it has by then
};

struct State {
  bosk::sched::BriefMask<A> brief;
  // The kernel's, which takes a lock for each look and change.
  A::atomic<uint32_t> mask{kOwn};
};

std::function<void()> asks(const Setting& setting) {
  return [=] {
    auto s = std::make_shared<State>();
    if (setting.is_bound) s->mask.store(kPrograms, relaxed);
    model::spawn([=] {
      for (int i = 0; i < setting.moves && !setting.is_bound; ++i) {
        const uint32_t target = i == 0 ? kTarget : kOther;
        if (s->mask.load(acquire) != kOwn) return;
        if (!setting.tells_nobody) s->brief.begin(target);
        uint32_t own = kOwn;
        if (s->mask.compare_exchange_strong(own, target, acq_rel, acquire)) {
          uint32_t now = target;
          if (setting.restores_all)
            s->mask.store(kOwn, release);
          else
            s->mask.compare_exchange_strong(now, kOwn, acq_rel, acquire);
        }
        s->brief.end();
      }
    });
    if (setting.gets_bound) model::spawn([=] { s->mask.exchange(kPrograms, acq_rel); });
    model::spawn([=] {
      const Bound bound = s->brief.is_bound([&] { return s->mask.load(acquire); });
      MODEL_ASSERT(bound != Bound::kUnknown);
      if (setting.is_bound) MODEL_ASSERT(bound == Bound::kYes);
      if (!setting.is_bound && !setting.gets_bound) MODEL_ASSERT(bound == Bound::kNo);
      if (bound == Bound::kYes) MODEL_ASSERT(s->mask.load(acquire) == kPrograms);
    });
  };
}

TEST(BriefMasks, AreNotThePrograms) {
  model::expect_proved({}, asks({}));
  model::expect_proved({}, asks({.moves = 2}));
}
TEST(BriefMasks, OfTheProgramAreSeen) {
  model::expect_proved({}, asks({.is_bound = true}));
  model::expect_proved({}, asks({.gets_bound = true}));
}

TEST(BriefMasksPlanted, TheWorkerTellsNobody) {
  model::expect_failure({}, asks({.tells_nobody = true}), "kNo");
}
TEST(BriefMasksPlanted, TheWorkerRestoresWhateverThereIs) {
  model::expect_failure({}, asks({.gets_bound = true, .restores_all = true}), "kPrograms");
}
TEST(BriefMasksPlanted, EveryWeakenedOrderIsCaught) {
  // What the word said before the look, and that a move begins or is over.
  model::expect_every_order_matters({}, {asks({}), asks({.moves = 2})}, "brief_mask.h", 3);
}

}  // namespace
