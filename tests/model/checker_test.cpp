// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Litmus tests of the checker itself: the exact set of outcomes that each memory order allows.
#include "checker/checker.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

using enum std::memory_order;
using A = model::ModelAtomics;
using Outcomes = std::set<std::string>;

struct Litmus {
  A::atomic<int> x, y, z;
  int r[6] = {-1, -1, -1, -1, -1, -1};
  std::string text(int n) const {
    std::string out;
    for (int i = 0; i < n; ++i) out += std::to_string(r[i]);
    return out;
  }
};

using Part = std::function<void(Litmus&)>;

/// Explores `parts` as threads; the outcomes are the first `n` registers. With and without sleep
/// sets the outcomes must be the same.
Outcomes outcomes(int n, const std::vector<Part>& parts, model::Options options = {}) {
  const auto body = [&] {
    auto l = std::make_shared<Litmus>();
    for (const Part& part : parts) model::spawn([l, &part] { part(*l); });
    model::at_end([l, n] { model::outcome(l->text(n)); });
  };
  const model::Result reduced = model::explore(options, body);
  EXPECT_TRUE(reduced.proved()) << reduced.failure;
  options.sleep_sets = false;
  const model::Result full = model::explore(options, body);
  EXPECT_TRUE(full.proved()) << full.failure;
  EXPECT_EQ(reduced.outcomes, full.outcomes);
  EXPECT_LE(reduced.executions, full.executions);
  return reduced.outcomes;
}

// ---- store buffering ----------------------------------------------------------------------------

Outcomes store_buffering(std::memory_order store, std::memory_order load, Part between) {
  return outcomes(2, {[=](Litmus& l) {
                        l.x.store(1, store);
                        between(l);
                        l.r[0] = l.y.load(load);
                      },
                      [=](Litmus& l) {
                        l.y.store(1, store);
                        between(l);
                        l.r[1] = l.x.load(load);
                      }});
}
const Outcomes kAllPairs{"00", "01", "10", "11"};
const Outcomes kNotBothZero{"01", "10", "11"};
void nothing(Litmus&) {}

TEST(StoreBuffering, RelaxedShowsBothZero) {
  EXPECT_EQ(store_buffering(relaxed, relaxed, nothing), kAllPairs);
}
TEST(StoreBuffering, ReleaseAcquireShowsBothZero) {
  EXPECT_EQ(store_buffering(release, acquire, nothing), kAllPairs);
}
TEST(StoreBuffering, AcqRelFenceShowsBothZero) {
  EXPECT_EQ(store_buffering(relaxed, relaxed, [](Litmus&) { A::fence(acq_rel); }), kAllPairs);
}
TEST(StoreBuffering, SeqCstFenceForbidsBothZero) {
  EXPECT_EQ(store_buffering(relaxed, relaxed, [](Litmus&) { A::fence(seq_cst); }), kNotBothZero);
}
TEST(StoreBuffering, SeqCstAccessesForbidBothZero) {
  EXPECT_EQ(store_buffering(seq_cst, seq_cst, nothing), kNotBothZero);
}
TEST(StoreBuffering, SeqCstStoreWithRelaxedLoadShowsBothZero) {
  EXPECT_EQ(store_buffering(seq_cst, relaxed, nothing), kAllPairs);
}
TEST(StoreBuffering, AsymmetricPair) {
  const auto run = [](auto first, auto second) {
    return outcomes(2, {[=](Litmus& l) {
                          l.x.store(1, relaxed);
                          first();
                          l.r[0] = l.y.load(relaxed);
                        },
                        [=](Litmus& l) {
                          l.y.store(1, relaxed);
                          second();
                          l.r[1] = l.x.load(relaxed);
                        }});
  };
  const auto light = [] { A::light_barrier(); };
  const auto heavy = [] { A::heavy_barrier(); };
  const auto none = [] {};
  EXPECT_EQ(run(light, heavy), kNotBothZero);
  EXPECT_EQ(run(heavy, light), kNotBothZero);
  EXPECT_EQ(run(heavy, heavy), kNotBothZero);
  EXPECT_EQ(run(light, light), kAllPairs);
  EXPECT_EQ(run(none, heavy), kAllPairs);
  EXPECT_EQ(run(light, none), kAllPairs);
}

// ---- message passing ----------------------------------------------------------------------------

Outcomes message_passing(std::memory_order store, std::memory_order load, Part before_store,
                         Part after_load) {
  return outcomes(2, {[=](Litmus& l) {
                        l.x.store(1, relaxed);
                        before_store(l);
                        l.y.store(1, store);
                      },
                      [=](Litmus& l) {
                        l.r[0] = l.y.load(load);
                        after_load(l);
                        l.r[1] = l.x.load(relaxed);
                      }});
}
const Outcomes kNoStaleData{"00", "01", "11"};

TEST(MessagePassing, RelaxedMayReadStaleData) {
  EXPECT_EQ(message_passing(relaxed, relaxed, nothing, nothing), kAllPairs);
}
TEST(MessagePassing, OneSideAloneIsNotEnough) {
  EXPECT_EQ(message_passing(release, relaxed, nothing, nothing), kAllPairs);
  EXPECT_EQ(message_passing(relaxed, acquire, nothing, nothing), kAllPairs);
}
TEST(MessagePassing, ReleaseAcquirePasses) {
  EXPECT_EQ(message_passing(release, acquire, nothing, nothing), kNoStaleData);
}
TEST(MessagePassing, FencesPass) {
  const Part rel = [](Litmus&) { A::fence(release); };
  const Part acq = [](Litmus&) { A::fence(acquire); };
  EXPECT_EQ(message_passing(relaxed, relaxed, rel, acq), kNoStaleData);
  EXPECT_EQ(message_passing(relaxed, acquire, rel, nothing), kNoStaleData);
  EXPECT_EQ(message_passing(release, relaxed, nothing, acq), kNoStaleData);
  EXPECT_EQ(message_passing(relaxed, relaxed, rel, nothing), kAllPairs);
}

// ---- more than two threads ----------------------------------------------------------------------

Outcomes independent_reads(std::memory_order store, std::memory_order load, Part between) {
  return outcomes(4,
                  {[=](Litmus& l) { l.x.store(1, store); }, [=](Litmus& l) { l.y.store(1, store); },
                   [=](Litmus& l) {
                     l.r[0] = l.x.load(load);
                     between(l);
                     l.r[1] = l.y.load(load);
                   },
                   [=](Litmus& l) {
                     l.r[2] = l.y.load(load);
                     between(l);
                     l.r[3] = l.x.load(load);
                   }});
}
Outcomes all_but(int n, const std::string& missing) {
  Outcomes all;
  for (int i = 0; i < 1 << n; ++i) {
    std::string text;
    for (int bit = n; bit-- > 0;) text += i >> bit & 1 ? '1' : '0';
    if (text != missing) all.insert(text);
  }
  return all;
}

TEST(IndependentReads, AcquireReadersMayDisagree) {
  EXPECT_EQ(independent_reads(release, acquire, nothing), all_but(4, ""));
}
TEST(IndependentReads, SeqCstReadersAgree) {
  EXPECT_EQ(independent_reads(seq_cst, seq_cst, nothing), all_but(4, "1010"));
}
TEST(IndependentReads, SeqCstFencesMakeReadersAgree) {
  EXPECT_EQ(independent_reads(relaxed, relaxed, [](Litmus&) { A::fence(seq_cst); }),
            all_but(4, "1010"));
}

TEST(Causality, WriteToReadIsTransitiveWithReleaseAcquire) {
  const auto run = [](std::memory_order store, std::memory_order load) {
    return outcomes(3, {[=](Litmus& l) { l.x.store(1, store); },
                        [=](Litmus& l) {
                          l.r[0] = l.x.load(load);
                          l.y.store(1, store);
                        },
                        [=](Litmus& l) {
                          l.r[1] = l.y.load(load);
                          l.r[2] = l.x.load(load);
                        }});
  };
  EXPECT_EQ(run(release, acquire), all_but(3, "110"));
  EXPECT_EQ(run(relaxed, relaxed), all_but(3, ""));
}

// ---- coherence ----------------------------------------------------------------------------------

TEST(Coherence, TwoReadsOfOnePlaceNeverGoBack) {
  EXPECT_EQ(outcomes(2, {[](Litmus& l) { l.x.store(1, relaxed); },
                         [](Litmus& l) {
                           l.r[0] = l.x.load(relaxed);
                           l.r[1] = l.x.load(relaxed);
                         }}),
            (Outcomes{"00", "01", "11"}));
}
TEST(Coherence, AllReadersSeeOneOrderOfStores) {
  const Outcomes seen = outcomes(
      4, {[](Litmus& l) { l.x.store(1, relaxed); }, [](Litmus& l) { l.x.store(2, relaxed); },
          [](Litmus& l) {
            l.r[0] = l.x.load(relaxed);
            l.r[1] = l.x.load(relaxed);
          },
          [](Litmus& l) {
            l.r[2] = l.x.load(relaxed);
            l.r[3] = l.x.load(relaxed);
          }});
  EXPECT_EQ(seen.count("1221"), 0u);
  EXPECT_EQ(seen.count("2112"), 0u);
  EXPECT_EQ(seen.size(), 7u * 7u - 2u);  // a reader alone: 00 01 02 11 12 21 22
}
Outcomes two_plus_two(std::memory_order order, Part between) {
  Outcomes seen;
  const model::Result r = model::explore({}, [&] {
    auto l = std::make_shared<Litmus>();
    model::spawn([=] {
      l->x.store(1, order);
      between(*l);
      l->y.store(2, order);
    });
    model::spawn([=] {
      l->y.store(1, order);
      between(*l);
      l->x.store(2, order);
    });
    model::at_end([=] {
      model::outcome(std::to_string(l->x.load(relaxed)) + std::to_string(l->y.load(relaxed)));
    });
  });
  EXPECT_TRUE(r.proved()) << r.failure;
  return r.outcomes;
}
TEST(Coherence, TwoPlusTwoWrites) {
  EXPECT_EQ(two_plus_two(relaxed, nothing), (Outcomes{"11", "12", "21", "22"}));
  EXPECT_EQ(two_plus_two(release, nothing), (Outcomes{"11", "12", "21", "22"}));
  EXPECT_EQ(two_plus_two(seq_cst, nothing), (Outcomes{"12", "21", "22"}));
  EXPECT_EQ(two_plus_two(relaxed, [](Litmus&) { A::fence(seq_cst); }),
            (Outcomes{"12", "21", "22"}));
}
TEST(Coherence, LoadBufferingIsNotModelled) {
  // C++20 allows "11"; the header says that we do not show it.
  EXPECT_EQ(outcomes(2, {[](Litmus& l) {
                           l.r[0] = l.x.load(relaxed);
                           l.y.store(1, relaxed);
                         },
                         [](Litmus& l) {
                           l.r[1] = l.y.load(relaxed);
                           l.x.store(1, relaxed);
                         }}),
            (Outcomes{"00", "01", "10"}));
}

// ---- release sequences --------------------------------------------------------------------------

TEST(ReleaseSequence, GoesThroughAnotherThreadsRelaxedRmw) {
  EXPECT_EQ(outcomes(2, {[](Litmus& l) {
                           l.x.store(1, relaxed);
                           l.y.store(1, release);
                         },
                         [](Litmus& l) { l.y.fetch_add(1, relaxed); },
                         [](Litmus& l) {
                           l.r[0] = l.y.load(acquire);
                           l.r[1] = l.x.load(relaxed);
                         }}),
            (Outcomes{"00", "01", "10", "11", "21"}));  // 10: the rmw came before the store
}
TEST(ReleaseSequence, EndsAtAPlainStoreEvenByTheSameThread) {
  EXPECT_EQ(outcomes(2, {[](Litmus& l) {
                           l.x.store(1, relaxed);
                           l.y.store(1, release);
                           l.y.store(2, relaxed);
                         },
                         [](Litmus& l) {
                           l.r[0] = l.y.load(acquire);
                           l.r[1] = l.x.load(relaxed);
                         }}),
            (Outcomes{"00", "01", "11", "20", "21"}));
}

// ---- read-modify-write --------------------------------------------------------------------------

TEST(Rmw, IncrementsAreNeverLost) {
  EXPECT_EQ(outcomes(3, {[](Litmus& l) { l.r[0] = l.x.fetch_add(1, relaxed); },
                         [](Litmus& l) { l.r[1] = l.x.fetch_add(1, relaxed); },
                         [](Litmus& l) { l.r[2] = l.x.fetch_add(1, relaxed); }}),
            (Outcomes{"012", "021", "102", "120", "201", "210"}));
}
TEST(Rmw, LoadAndStoreLoseIncrements) {
  const model::Result r = model::explore({}, [] {
    auto l = std::make_shared<Litmus>();
    for (int i = 0; i < 2; ++i) model::spawn([=] { l->x.store(l->x.load(relaxed) + 1, relaxed); });
    model::at_end([=] { model::outcome(std::to_string(l->x.load(relaxed))); });
  });
  EXPECT_TRUE(r.proved());
  EXPECT_EQ(r.outcomes, (Outcomes{"1", "2"}));
}
TEST(Rmw, CompareExchangeCounterIsExact) {
  const model::Result r = model::explore({}, [] {
    auto l = std::make_shared<Litmus>();
    for (int i = 0; i < 3; ++i)
      model::spawn([=] {
        int old = l->x.load(relaxed);
        while (!l->x.compare_exchange_weak(old, old + 1, relaxed, relaxed)) {
        }
      });
    model::at_end([=] { model::outcome(std::to_string(l->x.load(relaxed))); });
  });
  EXPECT_TRUE(r.proved()) << r.failure;
  EXPECT_EQ(r.outcomes, (Outcomes{"3"}));
}
TEST(Rmw, WeakCompareExchangeMayFailForNoReason) {
  const Part part = [](Litmus& l) {
    int old = 0;
    l.r[0] = l.x.compare_exchange_weak(old, 1, relaxed, relaxed) ? 1 : 0;
  };
  EXPECT_EQ(outcomes(1, {part}), (Outcomes{"1"}));
  EXPECT_EQ(outcomes(1, {part}, {.spurious_cas = 1}), (Outcomes{"0", "1"}));
}
TEST(Rmw, NarrowTypesWrapAround) {
  const model::Result r = model::explore({}, [] {
    auto x = std::make_shared<A::atomic<std::uint8_t>>(std::uint8_t{250});
    model::spawn([=] {
      x->fetch_add(10, relaxed);
      x->fetch_or(3, relaxed);
      x->fetch_and(0xfe, relaxed);
      x->fetch_sub(7, relaxed);
    });
    model::at_end([=] { MODEL_ASSERT(x->load(relaxed) == 255); });
  });
  EXPECT_TRUE(r.proved()) << r.failure;
}

}  // namespace
